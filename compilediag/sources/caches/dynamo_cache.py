"""Dynamo's own cache: the compiled code of each function, in memory, and packages of it on disk.

A look-up that finds an entry is done in C++ and nothing of ours is near it. One that finds none calls Dynamo, and
that is a miss; what comes of it is an entry (saved), a failure, or code that is not looked up any more (bypass).
"""

from __future__ import annotations

import dataclasses
import time
from collections import defaultdict
from dataclasses import dataclass
from threading import get_ident
from typing import Any

from ...decode.records.compilation_metrics import SKIPS
from ...events import CacheLookup
from ...recording import Made
from .. import _compat
from .._compat import dynamo_caches as places
from ..dynamo.current_compile import whose
from ..hooks import shield
from ..hooks.patching import Args, Kwargs, Patch, Raised
from ..hooks.source import Source

MAX_REASON = 500
#: Conversions of a thread that began and were never heard of again.
MAX_OPEN = 16


@dataclass(slots=True)
class Conversion:
    """A frame that Dynamo was called for; `result` is what it gave so far, `compile_id` None before it compiles."""

    time_ns: int
    code: Any
    #: Entries that the code had, none of which fits.
    entries: int
    compile_id: str | None = None
    limit: str | None = None
    result: Any = None


class DynamoCache(Source):
    name = "dynamo_cache"

    def __init__(self, *args: Any):
        super().__init__(*args)
        #: thread -> its conversions, one inside another if need be.
        self._open: defaultdict[int, list[Conversion]] = defaultdict(list)
        #: thread -> the entry whose guards are about an object that is just now gone.
        self._dying: dict[int, dict[str, Any] | None] = {}
        #: thread -> the entries of the code that is just now reset.
        self._leaving: dict[int, list[dict[str, Any]]] = {}
        #: thread -> key of the package that was read, and what that raised.
        self._read: dict[int, tuple[str, Raised]] = {}

    @classmethod
    def probe(cls) -> None:
        places.conversion_module()
        places.conversion_result()
        places.limit_module()
        _compat.metrics_module()
        places.check_function()
        places.reset_modules()
        places.package_store()
        places.package_base()
        places.package_cache()

    def patches(self) -> list[Patch]:
        shielded = self.guarded
        return [
            Patch(places.conversion_module(), "increment_frame", self._began, shielded),
            Patch(places.limit_module(), "exceeds_recompile_limit", self._compiles, shielded),
            Patch(places.conversion_result(), "__init__", self._gave, shielded),
            Patch(_compat.metrics_module(), "add_compilation_metrics_to_chromium", self._compiled, shielded),
            Patch(places.check_function(), "invalidate", self._invalidated, shielded, before=self._invalidates),
            *(Patch(m, "reset_code", self._reset, shielded, before=self._resets) for m in places.reset_modules()),
            Patch(places.package_cache(), "load", self._package_loaded, shielded, before=self._package_loads),
            Patch(places.package_base(), "load_cache_entry", self._package_read, shielded),
            Patch(places.package_store(), "write", self._package_written, shielded),
        ]

    # Look-ups that failed, and what came of them

    def _began(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        code = places.converted_code()
        if code is not None:
            running = self._open[get_ident()]
            running.append(Conversion(time.time_ns(), code, len(places.entries_of(code))))
            del running[:-MAX_OPEN]

    def _compiles(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        """The conversion goes so far as to compile, or would if no limit was reached."""
        running = self._open.get(get_ident())
        if running and error is None:
            running[-1].compile_id = str(_compat.argument(args, kwargs, 1, "compile_id"))
            running[-1].limit = result[1] if result[0] else None

    def _gave(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        """Torch skips the frame without a compile, or has compiled it and may still fail: the metrics come last."""
        running = self._open.get(get_ident())
        if not running:
            return
        running[-1].result = args[0]
        if running[-1].compile_id is None:
            done = running.pop()
            if args[0].apply_to_code:  # Else the frame is looked up again at each call, and left alone each time.
                self._tell(done, "bypass", _skipped(args[0]))

    def _compiled(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        metrics, running = _compat.argument(args, kwargs, 0, "c"), self._open.get(get_ident())
        if not running or metrics.is_forward is False or metrics.compile_id not in [c.compile_id for c in running]:
            return
        while running:
            done = running.pop()
            last = done.compile_id == metrics.compile_id
            self._tell(done, *_outcome(done, metrics if last else None))
            if last:
                return

    def _tell(self, done: Conversion, outcome: str, reason: str | None, exception_type: str | None = None) -> None:
        owner = {"compile_id": done.compile_id, **places.code_columns(done.code)}
        self.emit(_looked_up, owner, done.time_ns, time.time_ns(), done.entries, outcome, reason, exception_type)

    # Entries that go

    def _invalidates(self, args: Args, kwargs: Kwargs) -> None:
        self._dying[get_ident()] = None if places.interpreter_ends() else places.live_entry(args[0])

    def _invalidated(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        entry = self._dying.pop(get_ident(), None)
        if entry is not None and places.is_dropped(args[0]):
            gone = _compat.argument(args, kwargs, 1, "obj_str")
            self.emit(_dropped, [entry], time.time_ns(), "evicted", f"{gone} is gone, which its guards are about")

    def _resets(self, args: Args, kwargs: Kwargs) -> None:
        code = _compat.argument(args, kwargs, 0, "code")
        self._leaving[get_ident()] = [places.entry_columns(entry) for entry in places.entries_of(code)]

    def _reset(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        entries = self._leaving.pop(get_ident(), None)
        if entries and error is None:
            self.emit(_dropped, entries, time.time_ns(), "cleared", "the function was reset")

    # Packages on disk

    def _package_loads(self, args: Args, kwargs: Kwargs) -> None:
        self._read.pop(get_ident(), None)

    def _package_read(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        self._read[get_ident()] = _compat.argument(args, kwargs, 1, "key"), error

    def _package_loaded(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        key, trouble = self._read.pop(get_ident(), (None, None))
        outcome = "failed" if error or trouble else "miss" if result is None else "hit"
        code = getattr(_compat.argument(args, kwargs, 1, "fn"), "__code__", None)
        self._package("look_up", outcome, key, error or trouble, {} if code is None else places.code_columns(code))

    def _package_written(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        key = _compat.argument(args, kwargs, 2, "path")
        self._package("store", "failed" if error else "saved", key, error, whose(self.recorder))

    def _package(self, action: str, outcome: str, key: str | None, error: Raised, owner: dict[str, Any]) -> None:
        row = {"cache": "dynamo_code", "tier": "local", "action": action, "outcome": outcome, "key": key, **owner}
        self.emit(_told, CacheLookup(time_ns=time.time_ns(), **row), error)


def _outcome(done: Conversion, metrics: Any) -> tuple[str, str | None, str | None]:
    """What came of a conversion that compiled, why, and the class of the exception that ended it."""
    if done.limit is not None:
        return "bypass", f"{done.limit} is reached: nothing more is compiled for this function", None
    failed = getattr(metrics, "fail_type", None)
    if failed is not None:
        return "bypass" if failed in SKIPS else "failed", (metrics.fail_reason or failed)[:MAX_REASON], failed
    if getattr(done.result, "guarded_code", None) is not None:
        return "saved", None, None
    return "bypass", _skipped(done.result), None


def _skipped(result: Any) -> str:
    return f"runs without being compiled: {getattr(result, 'skip_reason', None) or 'torch skips this function'}"


def _looked_up(
    owner: dict[str, Any],
    start: int,
    end: int,
    entries: int,
    outcome: str,
    reason: str | None,
    exception_type: str | None,
) -> Made:
    """The miss, and what came of it."""
    missed = f"{entries} entries, none of which fits" if entries > 1 else "one entry, which does not fit"
    row = {"cache": "dynamo_code", "tier": "memory", **owner}
    then = {"outcome": outcome, "reason": reason, "exception_type": exception_type}
    taken_s = (end - start) / 1e9 if outcome == "saved" else None
    return [
        CacheLookup(
            time_ns=start, **row, action="look_up", outcome="miss", reason=missed if entries else "no entry yet"
        ),
        CacheLookup(time_ns=end, **row, action="store", **then, taken_s=taken_s),
    ]


def _told(row: CacheLookup, error: Raised) -> Made:
    if error is not None:
        reason = shield.told(error)[:MAX_REASON]
        row = dataclasses.replace(row, reason=reason, exception_type=type(error).__name__)
    return (row,)


def _dropped(entries: list[dict[str, Any]], time_ns: int, outcome: str, reason: str) -> Made:
    row = {"cache": "dynamo_code", "tier": "memory", "action": "clear", "outcome": outcome, "reason": reason}
    return [CacheLookup(time_ns=time_ns, **row, **entry) for entry in entries]
