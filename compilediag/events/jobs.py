"""The ranks of a job whose logs were grouped before they were read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from .base import Event, column


@dataclass(frozen=True, slots=True, kw_only=True)
class RankMember(Event):
    """A rank of a job that was read group by group: of each group, one rank has rows in the other tables."""

    kind: ClassVar[str] = "rank_member"
    table: ClassVar[str] = "rank_members"

    like: int | None = column("Int64", "the rank of its group whose rows are in the other tables")
    digest: str | None = column("string", "digest of what the rank compiled and why, equal within the group")
    compiles: int | None = column("Int64", "compiles of this rank")
    compile_s: float | None = column("float64", "seconds that this rank compiled", unit="s")
    step_s: list[float | None] | None = column(
        "json", "seconds of each compile of this rank, in order; null if it was not timed"
    )
    logs: list[str] | None = column("json", "the files that were read", user_data="content")

    @property
    def title(self) -> str:
        return f"rank {self.rank} like rank {self.like}"
