"""Where a session comes from: the state of its sources, and the ranks of its job."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from .base import Event, column

#: What a `status` column of a source can name.
SOURCE_STATES = ("active", "off", "unavailable", "failed")
#: What a `reason_code` column of a source can name. The first four are no gap in the data: the user did not ask for
#: the source, the detail level leaves it out, this machine has nothing to watch, or the watch is over. `not_in_logs`:
#: TORCH_TRACE logs do not contain it; `unread_files`: parts of the session could not be read; `lost`: its file can't
#: be written any more.
SOURCE_REASONS = (
    "not_requested",
    "detail_level",
    "nothing_to_watch",
    "watch_ended",
    "not_started",
    "missing_api",
    "errors",
    "not_in_logs",
    "unread_files",
    "lost",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceStatus(Event):
    """The state of one source, written when it changes and when the watch ends; the last one counts."""

    kind: ClassVar[str] = "source"
    table: ClassVar[str] = "sources"
    shown_first: ClassVar[tuple[str, ...]] = ("name", "status", "reason", "events", "overhead_s")

    name: str | None = column("string", "name of the source", user_data="name")
    status: str | None = column("string", "active, unavailable, failed or off")
    reason_code: str | None = column("string", "one of the source reasons: why it is not active")
    reason: str | None = column("string", "the same in words", user_data="content")
    events: int | None = column("Int64", "events that it recorded")
    dropped: int | None = column("Int64", "events or payloads that it could not keep")
    overhead_s: float | None = column("float64", "time that its hooks took inside the user's program", unit="s")

    @property
    def title(self) -> str:
        return f"{self.name} {self.status}"


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
