"""What a run of the program showed, and what a move is: it proposes changes from that."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

from ..diagnosis.causes.call_sites import read_own_code
from ..diagnosis.causes.cause import Cause, get_value_type
from ..diagnosis.causes.grouping import find_causes
from ..diagnosis.change import Edit, Settings
from ..diagnosis.evidence import Evidence
from ..diagnosis.plan import Plan, make_plan
from ..diagnosis.rules.recompiles import advise
from ..diagnosis.source_edits import EditError
from .program import MODULE, Place, Program, ProgramChange, assign_settings

#: What a change is, for `--allow`.
KINDS = ("dynamic", "marks", "settings", "tensor", "isolate", "code")
Bundle = tuple[ProgramChange, ...]


@dataclass(frozen=True)
class Observation:
    """What a run of the program in some state showed. `unchanged` is what the unchanged program showed. `is_uncached`:
    a graph enters autocast, so no cache keeps it.
    """

    program: Program
    evidence: Evidence
    unchanged: Observation | None = None
    is_uncached: bool = False

    @cached_property
    def causes(self) -> tuple[Cause, ...]:
        """The root causes of the recompiles that happened."""
        return tuple(find_causes(self.evidence))

    @cached_property
    def open_causes(self) -> tuple[Cause, ...]:
        """Those of which not every compiled version is needed."""
        return tuple(cause for cause in self.causes if not advise(cause.alone).is_expected)

    @cached_property
    def plan(self) -> Plan:
        """What the diagnosis predicts."""
        return make_plan(self.evidence)

    def find_place(self, cause: Cause) -> Place:
        """Where a setting holds for a cause: configuration is per thread, and main's does not reach a worker."""
        if cause.facts.thread is None:
            return MODULE
        own = read_own_code(self.evidence)
        stack = self.evidence.stacks.find(cause.recompiles[0].compile_key)
        frames = [frame for frame in self.evidence.stacks.walk(stack) if own.is_own(frame.file, frame.function)]
        last = frames[-1] if frames else None
        return MODULE if last is None or last.file is None or last.line is None else (last.file, last.line)

    def change_settings(self, cause: Cause, settings: Settings) -> ProgramChange:
        """The change that assigns settings where they hold for a cause."""
        place = self.find_place(cause)
        file = self.program.find(place[0])
        where = (file.name, place[1]) if file is not None else MODULE
        return assign_settings(settings, where)


class Move(Protocol):
    """Proposes bundles of changes."""

    def propose(self, seen: Observation) -> Iterable[Bundle]:
        """The bundles, the most likely first; none where the move does not apply."""
        ...


def change_edits(seen: Observation, edits: Sequence[Edit], kind: str, title: str) -> ProgramChange | None:
    """Edits of the diagnosis as a change; None if they do not fit the program."""
    try:
        parts = seen.program.convert(edits)
    except EditError:
        return None
    return ProgramChange(kind, title, parts) if parts else None


def can_be_dynamic(cause: Cause) -> bool:
    """True for a size or a number, and for a relation of several."""
    if cause.kind == "length":
        return False
    types = {get_value_type(value) for value in cause.values}
    return cause.path.is_size or cause.is_relation or bool(types & {"int", "float"})
