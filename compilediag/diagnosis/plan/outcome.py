"""The outcome of a trial: what the program did without and with a plan."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from types import NoneType
from typing import Any

from ...formatting import escape_controls, format_amount, format_seconds

#: The key of an outcome in a session's meta.
META_KEY = "tried"


@dataclass(frozen=True)
class Outcome:
    """What a program did without ("before") and with ("after") a plan.

    Of several runs, `recompiles_before` is the smallest count and `recompiles_after` the largest, and each time is that
    of the fastest run. `compile_seconds_*` (s) is the time of all compiles, `wall_seconds_*` (s) that of the whole run.
    `exit_codes` are those without and with the plan; None for a workload that is no process, and after a timeout.
    `same_output` is None if the output was not compared. `backend` is the backend that replaced the program's own, as
    "eager" for `--fast`, or None; times are then of no interest. `holds`: the recompiles that the plan names are gone
    and nothing else changed. `note` says in one line why it does not hold, or what is not known. `code` is the block
    that was tried, and `runs` how often each side ran. What was not measured is None.
    """

    recompiles_before: int | None = None
    recompiles_after: int | None = None
    compile_seconds_before: float | None = None
    compile_seconds_after: float | None = None
    wall_seconds_before: float | None = None
    wall_seconds_after: float | None = None
    exit_codes: tuple[int | None, int | None] = (None, None)
    same_output: bool | None = None
    backend: str | None = None
    note: str | None = None
    holds: bool = False
    code: str = ""
    runs: int = 1

    def to_dict(self) -> dict[str, Any]:
        """The outcome as plain JSON values, with `text`, the outcome in one line."""
        return {**dataclasses.asdict(self), "exit_codes": [*self.exit_codes], "text": str(self)}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Outcome:
        """The outcome that `to_dict` gave; values of a later version, or of another type, are ignored."""
        fields = {field.name: str(field.type) for field in dataclasses.fields(cls) if field.name != "exit_codes"}
        found = {name: value for name, value in values.items() if name in fields and _fits(value, fields[name])}
        codes = values.get("exit_codes")
        if isinstance(codes, list) and len(codes) == 2 and all(_fits(code, "int | None") for code in codes):
            found["exit_codes"] = tuple(codes)
        return cls(**found)

    def __str__(self) -> str:
        parts = [*self._list_changes(), *self._list_agreements()]
        verdict = "Tried, the plan holds" if self.holds else "Tried, the plan does not hold"
        text = f"{verdict}: {', '.join(parts)}" if parts else verdict
        return escape_controls(f"{text}. {self.note[:1].upper()}{self.note[1:]}." if self.note else f"{text}.")

    def _list_changes(self) -> list[str]:
        found = []
        if self.recompiles_before is not None and self.recompiles_after is not None:
            found.append(f"{format_amount(self.recompiles_before, 'recompile')} -> {self.recompiles_after}")
        if self.backend is not None:
            return [*found, f"with the backend {self.backend!r}, so times were not compared"]
        if self.compile_seconds_before is not None and self.compile_seconds_after is not None:
            before, after = format_seconds(self.compile_seconds_before), format_seconds(self.compile_seconds_after)
            found.append(f"{before} -> {after} compiling")
        if self.wall_seconds_before is not None and self.wall_seconds_after is not None:
            before, after = format_seconds(self.wall_seconds_before), format_seconds(self.wall_seconds_after)
            found.append(f"{before} -> {after} in all")
        return found

    def _list_agreements(self) -> list[str]:
        found = []
        one, other = self.exit_codes
        if one is not None and other is not None:
            found.append(f"exit code {one}" if one == other else f"exit code {one} -> {other}")
        if self.same_output is not None:
            found.append("same output" if self.same_output else "other output")
        return found


def _fits(value: object, declared: str) -> bool:
    """True if a value is of one of the types that a field declares."""
    return any(type(value) in _TYPES[name] for name in declared.split(" | "))


_TYPES: dict[str, tuple[type, ...]] = {
    "int": (int,),
    "float": (int, float),
    "bool": (bool,),
    "str": (str,),
    "None": (NoneType,),
}


def read_outcome(meta: Mapping[str, Any]) -> Outcome | None:
    """The outcome that is stored in a session's meta; None if no plan was tried."""
    found = meta.get(META_KEY)
    return Outcome.from_dict(found) if isinstance(found, Mapping) else None
