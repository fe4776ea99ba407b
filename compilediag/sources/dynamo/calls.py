"""Calls, only if requested: how often each compiled entry ran, and each function that torch gave up on.

Here our code is on the path of every such call, and of no other. The counted code is the one that the interpreter
runs: an entry's own code object, which Dynamo made, runs where its guards hold; the user's own code object runs under
torch.compile only where Dynamo runs it uncompiled. Counts are written when the watch ends, and before that at most once
a second and once in a sixtieth of the time that they are counted for.

With them comes what a call pays for the guards of an entry: one check that holds, with warm caches. torch measures a
check once in each compile, after it has emptied the processor's caches, so its figure is many times what a call in a
loop pays. The same check, of the arguments of the call that compiled, is repeated here.
"""

from __future__ import annotations

import inspect
import sys
import time
import types
from collections import defaultdict
from collections.abc import Callable
from threading import get_ident
from time import perf_counter_ns
from typing import Any

from ...events import Calls
from ...system import clock
from ...system.interrupts import pass_on
from ..compile_context import EventSink, PerThread, code_columns
from ..guards.guard_scope import GuardScope
from ..guards.guard_walk import runs_users_code
from ..hooks.patches import Args, Kwargs, Raised
from ..hooks.source import MAX_ERRORS, CountingSource, Source, hook
from ..hooks.torch_names import Unavailable, call_argument
from . import torch_api

#: The tool numbers that Python reserves for no kind of tool, as it does for debuggers, coverage and profilers.
FREE_TOOLS = (4, 3)
#: The name under which a tool number is taken.
TOOL = "compilediag"
#: Open calls that are kept per thread. A call that raised has no event and stays open; the oldest are dropped.
MOST_OPEN = 64
_NO_TIMES = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR


class CodeCalls:
    """Calls of one code object. Hooks only add, each number in one step, so that threads need no lock."""

    __slots__ = ("calls", "code", "first_ns", "is_eager", "known", "min_ns", "since_ns", "taken", "timed", "total_ns")

    def __init__(self, code: types.CodeType, is_eager: bool, known: dict[str, Any]):
        self.code = code  # Held, so that its id stays its own.
        self.is_eager = is_eager
        self.known = known
        self.clear()

    def clear(self) -> None:
        self.calls = self.timed = self.total_ns = 0
        self.min_ns: int | None = None
        self.first_ns: int | None = None
        #: The counts at the last `take`: calls, those that are timed, and their ns.
        self.taken = (0, 0, 0)
        self.since_ns = clock.now_ns()

    def take(self) -> dict[str, Any] | None:
        """The counts since the last `take`, as columns; None if there were no calls."""
        now, since_ns = (self.calls, self.timed, self.total_ns), self.since_ns
        calls, timed, total_ns = (new - old for new, old in zip(now, self.taken, strict=True))
        if not (calls or timed):
            return None
        first = _seconds(self.first_ns) if timed and not self.taken[1] else None
        self.taken, self.since_ns = now, clock.now_ns()
        row = {"time_ns": since_ns, "count": calls, "timed": timed, "first_s": first, **self.known}
        return {**row, "total_s": total_ns / 1e9 if timed else None, "min_s": _seconds(self.min_ns)}


def _seconds(ns: int | None) -> float | None:
    return None if ns is None else ns / 1e9


def _find_monitoring() -> Any:
    """`sys.monitoring`; None before Python 3.12."""
    return getattr(sys, "monitoring", None)


def require_monitoring() -> None:
    if _find_monitoring() is None:
        raise Unavailable("counting calls needs Python 3.12's sys.monitoring")


class CallCounter:
    """Counts and times the calls of the given code objects with Python 3.12's `sys.monitoring`, from `begin` to `end`.

    Only the counted code objects have events, and only where a call begins and returns: the interpreter does no extra
    work for any other code. The two callbacks run inside the user's program. They are short and call no Python
    function, which Dynamo would compile; so their state is a dict by thread id and not a `PerThread`.
    """

    def __init__(self) -> None:
        self.tallies: dict[int, CodeCalls] = {}
        self.errors: list[BaseException] = []
        self.own_ns = 0
        #: thread -> its calls that have not returned: [tally, when it began or None if it is not timed].
        self._open: defaultdict[int, list[list[Any]]] = defaultdict(list)
        self._tool: int | None = None
        self._is_counting = False

    def hooks(self) -> tuple[types.CodeType, types.CodeType]:
        """The code of the two callbacks that run at calls."""
        return self._call_began.__code__, self._call_returned.__code__

    def begin(self, inside: Callable[[], Any]) -> None:
        """Start counting. Unavailable if other tools use all free tool numbers.

        `inside`, which is no Python function, returns None where an eager call is not under torch.compile.
        """
        monitoring, self._inside = _find_monitoring(), inside
        self._tool = next((tool for tool in FREE_TOOLS if monitoring.get_tool(tool) is None), None)
        if self._tool is None:
            users = " and ".join(str(monitoring.get_tool(tool)) for tool in FREE_TOOLS)
            raise Unavailable(f"{users} use the free tool numbers of sys.monitoring")
        monitoring.use_tool_id(self._tool, TOOL)
        monitoring.register_callback(self._tool, monitoring.events.PY_START, self._call_began)
        monitoring.register_callback(self._tool, monitoring.events.PY_RETURN, self._call_returned)
        self._is_counting = True
        for tally in self.tallies.values():
            self._listen(tally)

    def end(self) -> None:
        """Give the tool number back with all of its events; called again after an interrupt, it goes on."""
        monitoring, tool = _find_monitoring(), self._tool
        if tool is None:
            return
        self._is_counting = False  # Other threads add no code from here on.
        if monitoring.get_tool(tool) == TOOL:
            for tally in list(self.tallies.values()):
                monitoring.set_local_events(tool, tally.code, monitoring.events.NO_EVENTS)
            for event in (monitoring.events.PY_START, monitoring.events.PY_RETURN):
                monitoring.register_callback(tool, event, None)
            monitoring.free_tool_id(tool)
        self._tool = None
        self._open.clear()

    def count(self, code: types.CodeType, is_eager: bool, known: dict[str, Any]) -> None:
        """Count the calls of `code` from now on; `known` are further columns of its rows."""
        tally = self.tallies.get(id(code))
        if tally is not None:
            tally.known = known
        elif self._is_counting:
            tally = self.tallies[id(code)] = CodeCalls(code, is_eager, known)
            self._listen(tally)

    def _listen(self, tally: CodeCalls) -> None:
        monitoring = _find_monitoring()
        events = monitoring.events
        timed = events.NO_EVENTS if tally.code.co_flags & _NO_TIMES else events.PY_RETURN
        monitoring.set_local_events(self._tool, tally.code, events.PY_START | timed)

    def subtract(self, duration_ns: int) -> None:
        """Subtract time that is not their own, such as a compile, from the calls that this thread is in."""
        for call in self._open.get(get_ident(), ()):
            if call[1] is not None:
                call[1] += duration_ns

    def _call_began(self, code: types.CodeType, offset: int) -> None:
        begin = perf_counter_ns()
        try:
            tally = self.tallies[id(code)]
            calls = self._open[get_ident()]
            if tally.is_eager and self._inside() is None:
                calls.append([tally, None])
            else:
                tally.calls += 1
                calls.append([tally, perf_counter_ns()])
            if len(calls) > MOST_OPEN:
                del calls[0]
        except Exception as error:
            pass_on(error)
            if len(self.errors) < MAX_ERRORS:
                self.errors.append(error)
        self.own_ns += perf_counter_ns() - begin

    def _call_returned(self, code: types.CodeType, offset: int, result: Any) -> None:
        end = perf_counter_ns()
        try:
            calls = self._open[get_ident()]
            at = len(calls) - 1
            while at >= 0 and calls[at][0].code is not code:
                at -= 1
            if at >= 0:
                tally, begin = calls[at]
                del calls[at:]
                if begin is not None:
                    taken = end - begin
                    tally.timed += 1
                    tally.total_ns += taken
                    if tally.first_ns is None:
                        tally.first_ns = taken
                    if tally.min_ns is None or taken < tally.min_ns:
                        tally.min_ns = taken
        except Exception as error:
            pass_on(error)
            if len(self.errors) < MAX_ERRORS:
                self.errors.append(error)
        self.own_ns += perf_counter_ns() - end


#: Counts are written after a 1/60 of the time that they were counted for, so that a run of days has few rows.
SHARE = 60
#: Frames between the hooks and the frame of the conversion.
DEPTH = 40


class CompiledCalls(CountingSource):
    name = "calls"
    needs = torch_api.FOR_CALLS
    checks = (require_monitoring,)
    on_request = True
    #: Whether the last conversion of the thread gave an entry.
    _gave_entry = PerThread(lambda: True)

    def __init__(self, recorder: EventSink, detail: str):
        super().__init__(recorder, detail)
        self._counter = CallCounter()
        self._began = time.monotonic()

    def open(self) -> None:
        """Start, with what was compiled before."""
        for code in self._counter.hooks():
            torch_api.leave_alone(code)
        self._counter.begin(torch_api.FRAME_CALLBACK.get_loaded())
        # What torch has compiled or tried to, and `torch._dynamo.reset()` would clear.
        for reference in list(torch_api.COMPILED_CODES.find().seen):
            if (code := reference()) is None:
                continue
            entries = torch_api.entries_of(code)
            for entry in entries:
                self._count(entry.code, False, entry.compile_id, code)
            if len(entries) >= torch_api.get_setting("recompile_limit"):
                self._count(code, True, None, code)
        super().open()

    def close(self) -> None:
        self._counter.end()
        super().close()

    # What is compiled during the watch

    @hook(torch_api.CONVERSION_RESULT)
    def _got_result(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        """The result of a conversion: if it is an entry, its code runs next."""
        entry = getattr(args[0], "guarded_code", None)
        self._gave_entry = entry is not None
        code = torch_api.converted_code(DEPTH) if entry is not None else None
        if entry is not None and code is not None:
            self.context.keys.assign(entry.compile_id)
            self._count(entry.code, False, entry.compile_id, code)

    @hook(torch_api.METRICS_RECORDED)
    def _on_compiled(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        """A compile is over: its time is not part of a call, and if it made no entry the function itself runs next."""
        metrics = call_argument(args, kwargs, 0, "c")
        if None not in (metrics.start_time_us, metrics.end_time_us):
            self._counter.subtract(1000 * (metrics.end_time_us - metrics.start_time_us))
        if metrics.is_forward is False:
            return
        failed, gave_entry = metrics.fail_type is not None, self._gave_entry
        del self._gave_entry
        code = torch_api.converted_code(DEPTH) if failed or not gave_entry else None
        # Torch did not give up on a function that never had anything to compile.
        if code is not None and (failed or torch_api.entries_of(code)):
            self._count(code, True, torch_api.current_compile_id(), code)

    def _count(self, code: types.CodeType, is_eager: bool, compile_id: Any, owner: types.CodeType) -> None:
        known = {
            "compile_id": None if compile_id is None else str(compile_id),
            "compile_key": self.context.keys.find(compile_id),
            **code_columns(owner),
            "ran": "eager" if is_eager else "compiled",
        }
        self._counter.count(code, is_eager, known)

    # What was counted

    def take_counts(self) -> list[tuple[Any, ...]]:
        self.interval_s = max(1.0, (time.monotonic() - self._began) / SHARE)
        self.overhead_ns += self._counter.own_ns
        self._counter.own_ns = 0
        rows = [row for tally in list(self._counter.tallies.values()) if (row := tally.take()) is not None]
        while self._counter.errors and self.errors < MAX_ERRORS:
            self.note_error(self._counter.errors.pop())
        return [(lambda: [Calls(**row) for row in rows],)] if rows else []

    def reset_after_fork(self) -> None:
        for tally in self._counter.tallies.values():
            tally.clear()


# What a check of guards costs

#: Checks of a round, and rounds: the fastest one counts, because others share the cores.
CHECKS, ROUNDS = 20, 5


class GuardChecks(Source):
    name = "guard_checks"
    needs = (torch_api.COMPILE_CONTEXT,)
    on_request = True

    @hook(torch_api.CONVERSION_RESULT)
    def _got_result(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        """The result of a conversion: if it is an entry, its guards hold for the arguments of this call."""
        entry, frame = getattr(args[0], "guarded_code", None), torch_api.converted_frame(DEPTH)
        if entry is None or frame is None:
            return
        known = self.context.frames.get(self.context.keys.find(entry.compile_id) or "")
        if known is not None:
            known["guard_check_us"] = time_check(entry.guard_manager, frame.f_locals)


def time_check(guard_manager: Any, f_locals: dict[str, Any]) -> float | None:
    """us of one check; None if the guards do not hold, or if checking them runs methods that the user wrote."""
    if runs_users_code(guard_manager, GuardScope(guard_manager, f_locals)):
        return None
    check = guard_manager.root.check
    if not check(f_locals):
        return None
    rounds = []
    for _ in range(ROUNDS):
        begin = perf_counter_ns()
        for _ in range(CHECKS):
            check(f_locals)
        rounds.append(perf_counter_ns() - begin)
    return min(rounds) / CHECKS / 1e3
