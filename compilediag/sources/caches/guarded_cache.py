"""What the sources of FxGraphCache and AOTAutogradCache share: a look-up or store that several hooks tell of.

The outer hook of a call puts a record on its thread's list and takes it off when the call ends; the hooks of
what torch calls in between fill it in. A look-up of FxGraphCache beneath one of AOTAutogradCache is a record
on top of the other.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from threading import get_ident
from typing import Any, ClassVar, TypeVar

from ...decode.records.cache_records import (
    NOT_PICKLED,
    NOT_SEARCHED,
    NOT_WRITTEN,
    CacheStore,
    LookUp,
    Trouble,
    describe_failing_guards,
    make_lookup_rows,
    make_store_row,
)
from ...events import CacheLookup
from ...recording import Made, Recorder
from .. import _compat
from .._compat import caches as places
from ..dynamo.current_compile import whose
from ..hooks import shield
from ..hooks.patching import Args, Kwargs, Patch, Raised
from ..hooks.source import Source, made
from .cache_keys import history_of

Record = TypeVar("Record", LookUp, CacheStore)
#: Why a guard miss has no single failing guard: AOTAutogradCache asks for the entry that it was saved with.
NOT_THE_SAME = "the entry was saved with other guards than the aot_autograd entry names"


def underway(recorder: Recorder) -> dict[int, list[Any]]:
    """The look-ups and stores that run now, a list a thread, the innermost last."""
    return recorder.shared.setdefault("underway", {})


def trouble(error: BaseException) -> Trouble:
    return Trouble(type(error).__name__, shield.told(error))


class GuardedCache(Source):
    """The hooks that both caches have; `cache` is what the rows call it, `owner` gives torch's class of it."""

    cache: ClassVar[str]
    owner: ClassVar[Callable[[], Any]]

    def __init__(self, *args: Any):
        super().__init__(*args)
        self._history = history_of(self.recorder)
        self._underway = underway(self.recorder)
        self._owner: Any = None
        self._registered: list[Any] = []

    @classmethod
    def probe(cls) -> None:
        cls.owner()
        places.guarded_cache()
        places.cache_logger()
        places.registered_caches()

    def patches(self) -> list[Patch]:
        self._owner = owner = self.owner()
        return [
            Patch(places.guarded_cache(), "find_guarded_entry", self._searched, self.guarded),
            Patch(owner, "_record_result", self._found, self.guarded),
            Patch(owner, "_write_to_local_cache", self._written, self.guarded),
            Patch(owner, "clear", self._cleared, self.guarded),
        ]

    def open(self) -> None:
        places.cache_logger().addFilter(self._listens)
        self._registered = places.registered_caches()
        self._registered.append(self)

    def close(self) -> None:
        places.cache_logger().removeFilter(self._listens)
        self._registered.remove(self)

    # Records of what runs

    def _begin(self, record: Any) -> None:
        record.compile_id = _compat.current_compile_id()
        record.frame = self.recorder.frames.get(record.compile_id or "", {})
        self._underway.setdefault(get_ident(), []).append(record)

    def _end(self, kind: type[Record]) -> Record | None:
        """Take off this cache's innermost record; None if the call began before the watch did."""
        thread = get_ident()
        running = self._underway.get(thread, [])
        at = next((i for i in reversed(range(len(running))) if self._is_mine(running[i], kind)), None)
        if at is None:
            return None
        record = running[at]
        del running[at:]
        if not running:
            self._underway.pop(thread, None)
        record.duration_s = (time.time_ns() - record.time_ns) / 1e9
        return record

    def _top(self, kind: type[Record]) -> Record | None:
        running = self._underway.get(get_ident())
        return running[-1] if running and self._is_mine(running[-1], kind) else None

    def _is_mine(self, record: Any, kind: type) -> bool:
        return isinstance(record, kind) and record.cache == self.cache

    # What happens inside of a look-up or store

    def _searched(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        """Torch has gone through the entries of a key."""
        look = self._top(LookUp)
        if look is None or args[0] is not self._owner:
            return
        key, local, _, evaluate, hints = (
            _compat.argument(args, kwargs, at, name)
            for at, name in enumerate(("key", "local", "remote_cache", "evaluate_guards", "hints"), 1)
        )
        look.key, look.is_local = key, bool(local)
        if error is not None:
            look.troubles["local"] = trouble(error)
            look.reason = f"{NOT_SEARCHED}: {shield.told(error)}"
            return
        _, content, info = result
        look.bytes = None if content is None else len(content)
        if info["cache_status_detailed"] == "guard_miss":
            look.guard = self._failing(info["cache_status_guard_expr"], evaluate, hints)
        elif content is None and local and not look.troubles and places.has_files(self._owner, key):
            look.troubles["local"] = Trouble(None, "torch logged why")

    def _failing(self, expression: str, evaluate: Any, hints: Any) -> str:
        if len(self._underway[get_ident()]) > 1:
            return f"{expression}: {NOT_THE_SAME}"
        values = {f"L['t{i}']": hint for i, hint in enumerate(hints)}
        return describe_failing_guards(expression, places.guard_holds(evaluate, hints), values)

    def _found(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        """Torch counts which tier had the entry."""
        look = self._top(LookUp)
        if look is not None:
            at = {"local": (2, "local_hit"), "remote": (4, "remote_hit")}
            look.found = next((t for t, place in at.items() if _compat.argument(args, kwargs, *place)), None)

    def _written(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        store = self._top(CacheStore)
        if store is None:
            return
        if error is None:
            store.bytes = len(_compat.argument(args, kwargs, 1, "content"))
        else:
            store.trouble = Trouble(type(error).__name__, f"{NOT_WRITTEN}: {shield.told(error)}")

    def _listens(self, record: logging.LogRecord) -> bool:
        """A filter that lets all pass. Only the log hears of an entry that could not be loaded or pickled."""
        if record.exc_info and record.exc_info[1] is not None:
            self.guarded(self._heard, str(record.msg), record.exc_info[1])
        return True

    def _heard(self, message: str, error: BaseException) -> None:
        look, store = self._top(LookUp), self._top(CacheStore)
        if look is not None and "unable to load" in message:
            # Before torch 2.15 only the remote tier's message begins with the cache's name.
            is_remote = message.startswith("%s") and (look.fetch is not None or "remote" in look.troubles)
            look.troubles["remote" if is_remote else "local"] = trouble(error)
        elif store is not None and store.trouble is None:
            what = NOT_PICKLED if "serialize" in message else NOT_WRITTEN
            store.trouble = Trouble(type(error).__name__, f"{what}: {shield.told(error)}")

    # What becomes of it

    def _tell_look_up(self, look: LookUp) -> None:
        self.emit(self._looked_up_events, look)

    def _looked_up_events(self, look: LookUp) -> Made:
        rows = make_lookup_rows(look)
        if self.detail == "full":
            at = next((at for at, row in enumerate(rows) if row.outcome == "hit"), 0)
            rows[at] = self._history.compare(rows[at], look.components or ())
        return rows

    def _tell_store(self, store: CacheStore) -> None:
        """A put that failed is told where the remote tier is watched; here what never came so far."""
        if store.bytes is not None:
            store.trouble = None
        if store.is_local or (store.trouble is not None and not store.trouble.text.startswith(NOT_WRITTEN)):
            self.emit(_store_events, store)

    def _cleared(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        self._tell_cleared(f"{self._owner.__name__}.clear()")

    def cache_clear(self) -> None:
        """Called by torch among all caches that it clears: it begins or ends a fresh cache directory."""
        self.guarded(self._freshened)

    def _freshened(self) -> None:
        stage = places.fresh_cache_stage()
        if stage is not None:
            what = "an empty directory" if stage == "begins" else "back in the directory before"
            self._tell_cleared(f"fresh_cache {stage}: {what}")

    def _tell_cleared(self, reason: str) -> None:
        names = {"cache": self.cache, "tier": "local", "action": "clear", "outcome": "cleared"}
        self.emit(made, CacheLookup(time_ns=time.time_ns(), reason=reason, **names, **whose(self.recorder)))


def _store_events(store: CacheStore) -> Made:
    return made(make_store_row(store))
