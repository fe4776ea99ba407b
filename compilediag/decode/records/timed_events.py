"""torch's timed events: those with a begin and an end are `Phase`s, an instant one can be a `DynamicDecision`."""

from __future__ import annotations

from collections.abc import Mapping

from ...events import DynamicDecision, Phase

#: Shorter phases are dropped: in `full` those of passes over a graph, of which there are dozens; in `lean` all.
FLOOR_NS = 1_000_000
PASS_PREFIX = "pass."
#: torch numbers the attempts at a frame in the names of their phases.
ATTEMPT_PREFIX = "compile_attempt_"
#: Name of the timed event around a whole compile; it comes before all other records of an attempt.
WHOLE_COMPILE = "dynamo"
#: Name of the phase in which torch builds and loads a library with the vector instructions that the CPU may have. torch
#: does not time it; a watch does. It has no row in TORCH_TRACE logs.
CPU_CHECK = "VecISA.check_build"
#: Phases that may be open at once: a log may never report the end of one.
MAX_OPEN = 10_000
#: Name of the instant event of automatic dynamic shapes.
AUTOMATIC_DYNAMIC = "automatic_dynamic"

_OpenPhase = tuple[str, int, str | None, str | None]


def is_phase_kept(name: str, length_ns: int, every: bool) -> bool:
    """Return whether a phase becomes a row. `every`: short ones too, except those of passes."""
    return length_ns >= FLOOR_NS or (every and not name.startswith(PASS_PREFIX))


def clean_compile_id(compile_id: str | None) -> str | None:
    """Return None for "None": torch announces what it times outside of any compile with that id."""
    return None if compile_id == "None" else compile_id


def make_phase(
    name: str,
    parent: str | None,
    depth: int,
    start_ns: int,
    end_ns: int,
    compile_id: str | None,
    compile_key: str | None = None,
) -> Phase:
    """Make one phase. `compile_id` is the one that torch announces."""
    return Phase(
        time_ns=start_ns,
        duration_s=(end_ns - start_ns) / 1e9,
        compile_id=clean_compile_id(compile_id),
        compile_key=compile_key,
        name=name,
        parent=parent,
        depth=depth,
    )


class OpenPhases:
    """The phases of a log that have begun and not ended. `compile_id` is the one that torch announces."""

    def __init__(self) -> None:
        #: (name, time in ns, compile id, compile key), in the order in which they began: first those within compiles,
        #: then those outside, which torch times in a thread of its own.
        self._open: tuple[list[_OpenPhase], list[_OpenPhase]] = ([], [])

    def begin(self, name: str, time_ns: int, compile_id: str | None, compile_key: str | None) -> None:
        """Note the begin of a phase."""
        opened = self._open[compile_id == "None"]
        if len(opened) < MAX_OPEN:
            opened.append((name, time_ns, compile_id, compile_key))

    def end(self, name: str, end_ns: int, compile_id: str | None) -> Phase | None:
        """Return the phase that ends: the last one with this name and compile, as threads may write at once."""
        opened = self._open[compile_id == "None"]
        at = len(opened) - 1
        while at >= 0 and (opened[at][0] != name or opened[at][2] != compile_id):
            at -= 1
        if at < 0:
            return None
        _, start_ns, _, compile_key = opened.pop(at)
        if not is_phase_kept(name, end_ns - start_ns, every=True):
            return None
        parent = opened[at - 1][0] if at else None
        return make_phase(name, parent, at, start_ns, end_ns, compile_id, compile_key)


def make_dynamic_decision(
    metadata: Mapping[str, object], time_ns: int, compile_key: str | None = None
) -> DynamicDecision:
    """Make the decision that an instant event of automatic dynamic shapes describes."""

    def text(name: str) -> str | None:
        value = metadata.get(name)
        return None if value is None else str(value)

    return DynamicDecision(
        time_ns=time_ns,
        compile_id=text("compile_id"),
        compile_key=compile_key,
        source=text("name"),
        dim=text("dim_changed"),
        reason=text("reason"),
        cached=text("cached"),
        new=text("new"),
    )
