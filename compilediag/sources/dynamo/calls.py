"""Calls, only if requested: how often each compiled entry ran, and each function that torch gave up on.

Here our code is on the path of every such call, and of no other. The counted code is the one that the interpreter
runs: an entry's own code object, which Dynamo made, runs where its guards hold; the user's own code object runs under
torch.compile only where Dynamo runs it uncompiled. Counts are written when the watch ends, and before that at most once
a second and once in a sixtieth of the time that they are counted for.
"""

from __future__ import annotations

import time
import types
from typing import Any

from ...events import Calls
from ..hooks.monitoring import CallCounter, require_monitoring
from ..hooks.patches import Args, Kwargs, Patch, Raised
from ..hooks.sink import EventSink, Made
from ..hooks.source import MAX_ERRORS, Source
from ..hooks.thread_state import PerThread
from ..hooks.torch_names import call_argument
from . import torch_api

INTERVAL_S = 1.0
#: Counts are written after a 1/60 of the time that they were counted for, so that a run of days has few rows.
SHARE = 60
#: Frames between the hooks and the frame of the conversion.
DEPTH = 40


class CompiledCalls(Source):
    name = "calls"
    needs = (torch_api.CONVERSION_RESULT, torch_api.METRICS_RECORDED, *torch_api.FOR_CALLS)
    on_request = True

    def __init__(self, recorder: EventSink, detail: str):
        super().__init__(recorder, detail)
        self._counter = CallCounter()
        #: Whether the last conversion of the thread gave an entry.
        self._gave_entry: PerThread[bool] = PerThread(lambda: True)
        self._began = self._due = time.monotonic()

    @classmethod
    def probe(cls) -> None:
        require_monitoring()
        super().probe()

    def patches(self) -> list[Patch]:
        return [
            self.watch(torch_api.CONVERSION_RESULT, self._got_result),
            self.watch(torch_api.METRICS_RECORDED, self._on_compiled),
        ]

    def open(self) -> None:
        """Start, with what was compiled before."""
        for hook in self._counter.hooks():
            torch_api.leave_alone(hook)
        self._counter.begin(torch_api.FRAME_CALLBACK.get_loaded())
        for code in torch_api.compiled_codes():
            entries = torch_api.entries_of(code)
            for entry in entries:
                self._count(entry.code, False, entry.compile_id, code)
            if len(entries) >= torch_api.max_entries():
                self._count(code, True, None, code)
        self.recorder.counters.append(self)

    def close(self) -> None:
        self._counter.end()
        self.recorder.release(self)

    # What is compiled during the watch

    def _got_result(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        """The result of a conversion: if it is an entry, its code runs next."""
        entry = getattr(args[0], "guarded_code", None)
        self._gave_entry.set(entry is not None)
        code = torch_api.converted_code(DEPTH) if entry is not None else None
        if entry is not None and code is not None:
            self.context.keys.assign(entry.compile_id)
            self._count(entry.code, False, entry.compile_id, code)

    def _on_compiled(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        """A compile is over: its time is not part of a call, and if it made no entry the function itself runs next."""
        metrics = call_argument(args, kwargs, 0, "c")
        if None not in (metrics.start_time_us, metrics.end_time_us):
            self._counter.subtract(1000 * (metrics.end_time_us - metrics.start_time_us))
        code = None if metrics.is_forward is False else self._find_given_up(metrics)
        if code is not None:
            self._count(code, True, torch_api.current_compile_id(), code)

    def _find_given_up(self, metrics: Any) -> types.CodeType | None:
        """The code that runs uncompiled from now on: its compile failed, or it had entries and now nothing to compile.

        Torch did not give up on a function that never had anything to compile.
        """
        failed, gave_entry = metrics.fail_type is not None, self._gave_entry.take()
        if not failed and gave_entry:
            return None
        code = torch_api.converted_code(DEPTH)
        return code if code is not None and (failed or torch_api.entries_of(code)) else None

    def _count(self, code: types.CodeType, is_eager: bool, compile_id: Any, owner: types.CodeType) -> None:
        known = {
            "compile_id": None if compile_id is None else str(compile_id),
            "compile_key": self.context.keys.find(compile_id),
            **torch_api.code_columns(owner),
            "ran": "eager" if is_eager else "compiled",
        }
        self._counter.count(code, is_eager, known)

    # What was counted

    def tick(self, final: bool = False) -> None:
        """Hand over what was counted since the last time, if it is due. Called by the writer's thread."""
        now = time.monotonic()
        if not final and now < self._due:
            return
        self._due = now + max(INTERVAL_S, (now - self._began) / SHARE)
        self.overhead_ns += self._counter.own_ns
        self._counter.own_ns = 0
        rows = [row for tally in list(self._counter.tallies.values()) if (row := tally.take()) is not None]
        if rows:
            self.emit(_make_rows, rows)
        while self._counter.errors and self.errors < MAX_ERRORS:
            self.note_error(self._counter.errors.pop())

    def reset_after_fork(self) -> None:
        """In a forked child: drop the counts so far, which the parent writes."""
        for tally in self._counter.tallies.values():
            tally.clear()


def _make_rows(rows: list[dict[str, Any]]) -> Made:
    return [Calls(**row) for row in rows]
