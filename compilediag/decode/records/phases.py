"""Timed events of a compile as `Phase`s, and which of them are kept."""

from __future__ import annotations

from ...events import Phase

#: Shorter phases are not kept: in `full` of the dozens of passes over a graph, in `lean` of all phases.
FLOOR_NS = 1_000_000
PASS_PREFIX = "pass."
#: torch counts the attempts at a frame in the names of their phases.
ATTEMPT = "compile_attempt_"


def is_kept(name: str, length_ns: int, every: bool) -> bool:
    """Whether a phase is worth a row; `every`: the short ones too, but for those of passes."""
    return length_ns >= FLOOR_NS or (every and not name.startswith(PASS_PREFIX))


def known_id(compile_id: str | None) -> str | None:
    """torch announces what it times outside of any compile with the id "None"."""
    return None if compile_id == "None" else compile_id


def phase(name: str, parent: str | None, depth: int, start_ns: int, end_ns: int, compile_id: str | None) -> Phase:
    """One phase. `compile_id` as torch announces it."""
    seconds, known = (end_ns - start_ns) / 1e9, known_id(compile_id)
    return Phase(time_ns=start_ns, duration_s=seconds, compile_id=known, name=name, parent=parent, depth=depth)
