"""Dynamo's own cache: the compiled code of each function, in memory, and packages of it on disk.

A look-up that finds an entry runs in C++ and calls nothing of ours. One that finds none calls Dynamo: a miss, whose
result is an entry (saved), a failure, or code that is not looked up any more (bypass).
"""

from __future__ import annotations

import dataclasses
import os
import types
from typing import Any

from ...decode.records.compilation_metrics import SKIPS
from ...events import CacheLookup
from ...system import clock
from ..compile_context import Made, OwnerColumns, PerThread, code_columns
from ..hooks.patches import Args, Kwargs, Raised
from ..hooks.source import CacheSource, hook, hook_before
from ..hooks.torch_names import call_argument, find_frame
from . import torch_api

CACHE = "dynamo_code"
#: The longest reason of a conversion that failed.
MAX_REASON = 500
#: Conversions of a thread that started and whose end was not seen.
MAX_OPEN = 16


@dataclasses.dataclass(slots=True)
class Conversion:
    """A frame that Dynamo was called for; `result` is its result so far, `compile_id` None before it compiles."""

    time_ns: int
    code: types.CodeType
    #: Entries that the code had, none of which fits.
    entries: int
    compile_id: str | None = None
    compile_key: str | None = None
    limit: str | None = None
    result: Any = None


class DynamoCache(CacheSource):
    name = "dynamo_cache"
    needs = (torch_api.CACHE_ENTRIES,)
    #: The thread's conversions, nested where compiles are.
    _open = PerThread[list[Conversion]](list)
    #: Key of the package that was read, and the error.
    _read = PerThread[tuple[str | None, Raised]](lambda: (None, None))

    # Look-ups that failed, and their results

    @hook(torch_api.CONVERSION_STARTS)
    def _conversion_started(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        code = torch_api.converted_code()
        if code is not None:
            running = self._open
            running.append(Conversion(clock.now_ns(), code, len(torch_api.looked_up_entries(code))))
            del running[:-MAX_OPEN]

    @hook(torch_api.LIMIT_CHECK)
    def _limit_checked(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        """The conversion gets as far as compiling, or would if no limit was reached."""
        running = self._open
        if running and error is None:
            compile_id = call_argument(args, kwargs, 1, "compile_id")
            running[-1].compile_key = self.context.keys.assign(compile_id)
            running[-1].compile_id = self.context.keys.format(compile_id)
            running[-1].limit = result[1] if result[0] else None

    @hook(torch_api.CONVERSION_RESULT)
    def _got_result(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        """Torch skips the frame without a compile, or has compiled it and may still fail: the metrics come last."""
        running = self._open
        if not running:
            return
        running[-1].result = args[0]
        if running[-1].compile_id is None:
            done = running.pop()
            if args[0].apply_to_code:  # Else the frame is looked up again at each call, and skipped each time.
                self._emit_conversion(done, "bypass", _why_skipped(args[0]))

    @hook(torch_api.METRICS_RECORDED)
    def _on_compiled(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        metrics, running = call_argument(args, kwargs, 0, "c"), self._open
        key = self.context.keys.match(metrics.compile_id)
        if not running or metrics.is_forward is False or key not in [c.compile_key for c in running]:
            return
        while running:
            done = running.pop()
            is_last = done.compile_key == key
            self._emit_conversion(done, *_find_outcome(done, metrics if is_last else None))
            if is_last:
                return

    def _emit_conversion(
        self, done: Conversion, outcome: str, reason: str | None, exception_type: str | None = None
    ) -> None:
        owner: OwnerColumns = {
            "compile_id": done.compile_id,
            "compile_key": done.compile_key,
            **code_columns(done.code),
        }
        end = (outcome, reason, exception_type)
        self.emit(_make_conversion_rows, owner, done.time_ns, clock.now_ns(), done.entries, *end)

    # Entries that go

    def _entry_columns(self, entry: Any) -> OwnerColumns:
        compile_id = getattr(entry, "compile_id", None)
        text, key = None if compile_id is None else str(compile_id), self.context.keys.find(compile_id)
        return {"compile_id": text, "compile_key": key, **code_columns(entry.code)}

    @hook_before(torch_api.ENTRY_INVALIDATED)
    def _before_invalidation(self, args: Args, kwargs: Kwargs) -> OwnerColumns | None:
        # At the exit of the interpreter, weakref calls the finalizers of all objects that are left.
        exits = find_frame(12, "weakref", "_exitfunc") is not None
        guards = None if exits else torch_api.entry_guards(args[0])
        entry = getattr(guards, "cache_entry", None)
        return None if entry is None else self._entry_columns(entry)

    @hook(torch_api.ENTRY_INVALIDATED)
    def _on_invalidated(
        self, args: Args, kwargs: Kwargs, result: Any, error: Raised, entry: OwnerColumns | None
    ) -> None:
        if entry is not None and torch_api.entry_guards(args[0]) is None:
            why = f"its guards refer to {call_argument(args, kwargs, 1, 'obj_str')}, which is gone"
            self.emit_lookup(CACHE, "memory", "clear", "evicted", owner=entry, reason=why)

    @hook_before(*torch_api.RESET_CODE)
    def _before_reset(self, args: Args, kwargs: Kwargs) -> list[OwnerColumns]:
        return [self._entry_columns(entry) for entry in torch_api.entries_of(call_argument(args, kwargs, 0, "code"))]

    @hook(*torch_api.RESET_CODE)
    def _reset(
        self, args: Args, kwargs: Kwargs, result: Any, error: Raised, entries: list[OwnerColumns] | None
    ) -> None:
        for entry in () if error is not None else entries or ():
            self.emit_lookup(CACHE, "memory", "clear", "cleared", owner=entry, reason="the function was reset")

    # Packages on disk

    @hook_before(torch_api.PACKAGE_LOOKED_UP)
    def _before_package_look_up(self, args: Args, kwargs: Kwargs) -> None:
        self._read = (None, None)

    @hook(torch_api.PACKAGE_READ)
    def _package_read(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        self._read = call_argument(args, kwargs, 1, "key"), error

    @hook(torch_api.PACKAGE_LOOKED_UP)
    def _package_looked_up(self, args: Args, kwargs: Kwargs, result: Any, error: Raised, begun: None) -> None:
        key, read_error = self._read
        del self._read
        outcome = "failed" if error or read_error else "miss" if result is None else "hit"
        code = getattr(call_argument(args, kwargs, 1, "fn"), "__code__", None)
        owner = self.context.function_columns(None) if code is None else code_columns(code)
        self.emit_lookup(CACHE, "local", "look_up", outcome, error or read_error, owner, key=key)

    @hook(torch_api.PACKAGE_WRITTEN)
    def _package_written(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        key = call_argument(args, kwargs, 2, "path")
        self.emit_lookup(CACHE, "local", "store", "failed" if error else "saved", error, key=key)


def _find_outcome(done: Conversion, metrics: Any) -> tuple[str, str | None, str | None]:
    """The outcome of a conversion that compiled, its reason, and the class of the exception that ended it."""
    if done.limit is not None:
        return "bypass", f"{done.limit} is reached: nothing more is compiled for this function", None
    failed = getattr(metrics, "fail_type", None)
    if failed is not None:
        return "bypass" if failed in SKIPS else "failed", (metrics.fail_reason or failed)[:MAX_REASON], failed
    if getattr(done.result, "guarded_code", None) is not None:
        return "saved", None, None
    return "bypass", _why_skipped(done.result), None


def _why_skipped(result: Any) -> str:
    return f"runs without being compiled: {getattr(result, 'skip_reason', None) or 'torch skips this function'}"


def _make_conversion_rows(
    owner: OwnerColumns,
    start: int,
    end: int,
    entries: int,
    outcome: str,
    reason: str | None,
    exception_type: str | None,
) -> Made:
    """The miss, and its result. One is made at each compile, so it is made in the writer's thread."""
    missed = f"{entries} entries, none of which fits" if entries > 1 else "one entry, which does not fit"
    why = missed if entries else "no entry yet"
    taken_s = (end - start) / 1e9 if outcome == "saved" else None
    common: dict[str, Any] = {"cache": CACHE, "tier": "memory", **owner}
    result = {**common, "outcome": outcome, "reason": reason, "exception_type": exception_type, "taken_s": taken_s}
    return [
        CacheLookup(time_ns=start, action="look_up", outcome="miss", reason=why, **common),
        CacheLookup(time_ns=end, action="store", **result),
    ]


OFF = {"outcome": "disabled", "reason": "automatic_dynamic_local_pgo is off"}


class Profiles(CacheSource):
    """Profile-guided optimization: which sizes an earlier run of this job found to vary, read and written on disk.

    It needs a job id (`TORCH_COMPILE_JOB_ID`). Its remote tier is one of the remote caches.
    """

    name = "pgo"
    needs = (torch_api.PROFILE_PATH,)

    @hook(torch_api.PROFILE_READ)
    def _read(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        """torch asks once per process, or once after `reset`; it treats a file that it cannot read as missing."""
        key = call_argument(args, kwargs, 0, "cache_key")
        path = torch_api.PROFILE_PATH.get_loaded()(key)
        columns: dict[str, Any]
        if path is None:
            columns = OFF
        elif not os.path.exists(path):
            columns = {"outcome": "miss"}
        elif result is None:
            reason = "its file cannot be read as a profile"
            columns = {"outcome": "failed", "reason": reason, "bytes": os.path.getsize(path)}
        else:
            columns = {"outcome": "hit", "bytes": os.path.getsize(path)}
        self._emit_row("look_up", key, error, columns)

    @hook(torch_api.PROFILE_WRITTEN)
    def _on_written(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        columns = {"outcome": "saved", "bytes": result[1]} if result is not None else OFF
        self._emit_row("store", call_argument(args, kwargs, 0, "cache_key"), error, columns)

    def _emit_row(self, action: str, key: str, error: Raised, columns: dict[str, Any]) -> None:
        columns = columns if error is None else {"outcome": "failed"}
        self.emit_lookup("pgo", "local", action, error=error, key=key, **columns)
