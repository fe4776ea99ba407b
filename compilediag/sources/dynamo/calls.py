"""Calls, only if they were asked for: how often each compiled entry ran, and each function that torch gave up on.

Here our code is on the path of every such call, and of no other. What is counted is the code that the interpreter runs:
an entry's own code object, which Dynamo made, runs where its guards hold; the user's own runs under torch.compile only
where Dynamo runs it as it is. Counts go to the file when the watch ends, and before that at most once a second and as
rarely as once in a sixtieth of the time that they are counted for.
"""

from __future__ import annotations

import time
import types
from threading import get_ident
from typing import Any

from ...events import Calls as Counted
from ...recording import Made
from .._compat import argument
from .._compat import calling as places
from ..hooks.monitoring import CallCounter, need_monitoring
from ..hooks.patching import Args, Kwargs, Patch, Raised
from ..hooks.source import MAX_ERRORS, Source

INTERVAL_S = 1.0
#: Counts wait for so small a part of the time that is counted, so that a run of days has few rows.
SHARE = 60
#: Frames between what is watched here and that of the conversion.
DEPTH = 40


class Calls(Source):
    name = "calls"
    on_request = True

    def __init__(self, *args: Any):
        super().__init__(*args)
        self._counter = CallCounter()
        #: thread -> whether the last conversion that it made gave an entry.
        self._gave_entry: dict[int, bool] = {}
        self._began = self._due = time.monotonic()

    @classmethod
    def probe(cls) -> None:
        need_monitoring()
        places.need()

    def patches(self) -> list[Patch]:
        return [
            Patch(places.conversion_result(), "__init__", self._gave, self.guarded),
            Patch(places.metrics_module(), "add_compilation_metrics_to_chromium", self._compiled, self.guarded),
        ]

    def open(self) -> None:
        """Begin, with what was compiled before."""
        for hook in self._counter.hooks():
            places.leave_alone(hook)
        self._counter.begin(places.frame_callback())
        for code in places.compiled_codes():
            entries = places.entries_of(code)
            for entry in entries:
                self._count(entry.code, False, entry.compile_id, code)
            if len(entries) >= places.most_entries():
                self._count(code, True, None, code)
        self.recorder.counters.append(self)

    def close(self) -> None:
        self._counter.end()
        self.recorder.release(self)

    # What is compiled while this watches

    def _gave(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        """What a conversion gave: if it is an entry, its code runs next."""
        entry = getattr(args[0], "guarded_code", None)
        self._gave_entry[get_ident()] = entry is not None
        code = places.converted_code(DEPTH) if entry is not None else None
        if code is not None:
            self._count(entry.code, False, entry.compile_id, code)

    def _compiled(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        """A compile is over: its time is none of the calls', and if it made no entry the function itself runs next."""
        metrics = argument(args, kwargs, 0, "c")
        if None not in (metrics.start_time_us, metrics.end_time_us):
            self._counter.leave_out(1000 * (metrics.end_time_us - metrics.start_time_us))
        code = None if metrics.is_forward is False else self._given_up(metrics)
        if code is not None:
            self._count(code, True, metrics.compile_id, code)

    def _given_up(self, metrics: Any) -> types.CodeType | None:
        """The code that runs as it is from now on: its compile failed, or it had entries and now nothing to compile.

        A function that never had anything to compile is none that torch gave up on.
        """
        failed, gave_entry = metrics.fail_type is not None, self._gave_entry.pop(get_ident(), True)
        if not failed and gave_entry:
            return None
        code = places.converted_code(DEPTH)
        return code if code is not None and (failed or places.entries_of(code)) else None

    def _count(self, code: types.CodeType, is_eager: bool, compile_id: Any, owner: types.CodeType) -> None:
        known = {
            "compile_id": None if compile_id is None else str(compile_id),
            **places.code_columns(owner),
            "ran": "eager" if is_eager else "compiled",
        }
        self._counter.count(code, is_eager, known)

    # What was counted

    def tick(self, final: bool = False) -> None:
        """Hand over what was counted since, if it is time to. The writer's thread asks."""
        now = time.monotonic()
        if not final and now < self._due:
            return
        self._due = now + max(INTERVAL_S, (now - self._began) / SHARE)
        self.overhead_ns += self._counter.own_ns
        self._counter.own_ns = 0
        rows = [row for tally in list(self._counter.tallies.values()) if (row := tally.take()) is not None]
        if rows:
            self.emit(_rows, rows)
        while self._counter.errors and self.errors < MAX_ERRORS:
            self.failed(self._counter.errors.pop())

    def forked(self) -> None:
        """In a child: what was counted so far is its parent's to write."""
        for tally in self._counter.tallies.values():
            tally.clear()


def _rows(rows: list[dict[str, Any]]) -> Made:
    return [Counted(**row) for row in rows]
