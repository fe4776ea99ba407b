"""Compile attempts of one process of a log: which records belong to which, and of which function.

torch uses a compile id again after a reset and, in a log of several processes, in each of them. So every attempt gets a
`compile_key` of its own where it starts. All later records with its compile id, those of its lazy backward included,
belong to it, until the next attempt with the same id starts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

#: Attempts and functions that are remembered: a log may never report the end of anything.
MAX_ATTEMPTS = 100_000

#: What a log reports of an attempt, in this order; some of it can be missing. An attempt that has come so far, or
#: farther, is over when the same is reported of its compile id again.
ANNOUNCED, REASONED, STARTED, MEASURED = 1, 2, 3, 4


@dataclass(frozen=True, slots=True)
class CompiledFunction:
    """The code object that is compiled."""

    function: str | None = None
    file: str | None = None
    line: int | None = None

    def as_columns(self) -> dict[str, str | int | None]:
        """Return function, file and line as columns."""
        return {"function": self.function, "file": self.file, "line": self.line}


UNKNOWN_FUNCTION = CompiledFunction()


@dataclass(slots=True, eq=False)
class CompileAttempt:
    """One compile attempt. Both ids are None for what happens outside of any compile.

    `stage` says how far it has come, `restarts` how often torch restarted its analysis, `stack` where it was called.
    """

    compile_id: str | None = None
    compile_key: str | None = None
    stage: int = 0
    restarts: int = 0
    function: CompiledFunction | None = None
    stack: str | None = None

    @property
    def is_announced(self) -> bool:
        """True for a compile. torch 2.15 gives compile ids to exports too, and logs no start of a compile for them."""
        return self.compile_id is not None and (self.stage > 0 or self.compile_id.startswith("!"))

    def note_restarts(self, number: object) -> None:
        """Note torch's number of the attempt at the frame, which counts from 0, once the analysis has started."""
        if self.function is not None and isinstance(number, int) and number > self.restarts:
            self.restarts = number


class Attempts:
    """Assigns records to attempts. `make_key` returns the key of the next attempt."""

    def __init__(self, make_key: Callable[[], str]) -> None:
        self._make_key = make_key
        self._current: dict[str | None, CompileAttempt] = {None: CompileAttempt()}
        #: What all compile ids of a code object have in common (see `find_frame_id`) -> its function.
        self._functions: dict[str, CompiledFunction] = {}

    def get(self, compile_id: str | None) -> CompileAttempt:
        """Return the attempt that has this id now. An id that was never announced starts one."""
        return self._current.get(compile_id) or self._add(compile_id)

    def find_key(self, compile_id: str | None) -> str | None:
        """Return the key of the attempt that has this id now; None if the log has none."""
        attempt = self._current.get(compile_id)
        return None if attempt is None else attempt.compile_key

    def advance(self, compile_id: str | None, stage: int) -> CompileAttempt:
        """Return the attempt that reaches `stage`: a new one if the current one has already been there."""
        attempt = self.get(compile_id)
        if compile_id is not None and attempt.stage >= stage:
            attempt = self._add(compile_id)
        attempt.stage = stage
        return attempt

    def start(self, attempt: CompileAttempt, function: CompiledFunction, stack: str | None) -> None:
        """Note the function of an attempt whose analysis starts."""
        attempt.function, attempt.stack = function, stack
        if len(self._functions) >= MAX_ATTEMPTS:
            self._functions.clear()
        self._functions[find_frame_id(attempt.compile_id)] = function

    def find_function(self, attempt: CompileAttempt) -> CompiledFunction:
        """Return the function of an attempt.

        An attempt that fails at once, as at the recompile limit, has no start: its function is that of the attempts
        before it.
        """
        return attempt.function or self._functions.get(find_frame_id(attempt.compile_id), UNKNOWN_FUNCTION)

    def describe(self, attempt: CompileAttempt) -> dict[str, object]:
        """Return the columns of an attempt that torch's metrics lack."""
        function = self.find_function(attempt)
        return {**function.as_columns(), "attempt": attempt.restarts, "stack": attempt.stack}

    def _add(self, compile_id: str | None) -> CompileAttempt:
        if len(self._current) >= MAX_ATTEMPTS:
            outside = self._current[None]
            self._current = {None: outside}
        attempt = self._current[compile_id] = CompileAttempt(compile_id, self._make_key())
        return attempt


def find_frame_id(compile_id: str | None) -> str:
    """Return what all compile ids of a code object have in common: `0/` for `0/1`."""
    head, slash, _ = (compile_id or "").rpartition("/")
    return head + slash
