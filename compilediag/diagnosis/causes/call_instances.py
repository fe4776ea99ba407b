"""One call of the user's code: the recompiles that happen while it runs, in several frames, belong together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...decode.call_stacks import is_torch_file
from ...events import Compile, Rows, StackFrame
from ...formatting import is_resumed
from ..stack_walk import StackWalk
from .guard_changes import CauseKey, GuardChange

#: The file of torch through which a call enters compiled code.
_ENTRANCES = ("_dynamo/eval_frame.py", "_dynamo\\eval_frame.py")

#: Changes that are looked back at: a call can run through thousands of frames.
MAX_EARLIER = 256

#: A function by its name and file.
Function = tuple[str | None, str | None]


@dataclass(frozen=True)
class OuterCall:
    """Where a compile happened: the key of the stack outside of the outermost compiled call, and the functions inside
    of it that were running.
    """

    stack: str
    running: frozenset[Function]


class OuterCalls:
    """The outer call of each compile."""

    def __init__(self, data: Rows):
        self._walk = StackWalk(data)
        self._stacks = {row.compile_key: row.stack for row in data.rows(Compile) if row.stack is not None}
        self._found: dict[str, OuterCall | None] = {}

    def find(self, compile_key: str | None) -> OuterCall | None:
        """The outer call; None if the stack is not known."""
        stack = self._stacks.get(compile_key)
        if stack is None:
            return None
        if stack not in self._found:
            self._found[stack] = self._find_outer([*self._walk.walk(stack)][1:])
        return self._found[stack]

    @staticmethod
    def _find_outer(callers: list[StackFrame]) -> OuterCall | None:
        """The outer call of the frames around a compiled one, innermost first."""
        entrances = [number for number, frame in enumerate(callers) if _is_entrance(frame)]
        outside = entrances[-1] + 1 if entrances else 0
        if outside >= len(callers):
            return None
        running = ((frame.function, frame.file) for frame in callers[:outside] if not is_torch_file(frame.file or ""))
        return OuterCall(callers[outside].stack or "", frozenset(running))


def _is_entrance(frame: StackFrame) -> bool:
    return is_torch_file(frame.file or "") and (frame.file or "").endswith(_ENTRANCES)


class CallInstance:
    """The recompiles of one call so far: what each guard saw, and the changes in the order of the frames."""

    def __init__(self) -> None:
        self.changes: list[GuardChange] = []
        self._values: dict[CauseKey, str | None] = {}
        self._functions: set[Function] = set()

    def fits(self, changes: Sequence[GuardChange]) -> bool:
        """False if this recompile is of a later call: its function ran already, or a guard sees another value."""
        place = changes[0].key
        if (place.function, place.file) in self._functions:
            return False
        return all(self._values.get(change.key, change.row.actual) == change.row.actual for change in changes)

    def add(self, changes: Sequence[GuardChange], running: frozenset[Function] = frozenset()) -> None:
        """Take the changes of one more recompile, and the functions that were running."""
        place = changes[0].key
        self.changes += changes
        self._values.update((change.key, change.row.actual) for change in changes)
        # Code after a graph break belongs to a function that ran before.
        self._functions |= {(place.function, place.file), *(one for one in running if not is_resumed(one[0]))}


class CallInstances:
    """Gives each recompile the call that it happened in. Recompiles have to come in the order of their time."""

    def __init__(self, data: Rows):
        self._outer = OuterCalls(data)
        self._instances: dict[tuple[object, ...], CallInstance] = {}

    def add(self, changes: Sequence[GuardChange]) -> list[GuardChange]:
        """Add a recompile, given by its changes; returns what changed in this call before, in the order of time.

        Nothing is known of other recompiles of the call where the stack is not known.
        """
        row = changes[0].row
        outer = self._outer.find(row.compile_key)
        if outer is None:
            return []
        place = row.rank, row.pid, outer.stack
        instance = self._instances.get(place)
        if instance is None or not instance.fits(changes):
            instance = self._instances[place] = CallInstance()
        before = instance.changes[-MAX_EARLIER:]
        instance.add(changes, outer.running)
        return before
