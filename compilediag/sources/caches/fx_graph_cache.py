"""FxGraphCache: every look-up, bypass and store of a compiled graph, whoever asks for it."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Mapping
from threading import get_ident
from typing import Any

from ...decode.records.cache_records import (
    NOT_PICKLED,
    NOT_SAVED,
    CacheStore,
    LookUp,
    Trouble,
    add_frame,
    make_write_row,
    parse_cache_event,
)
from ...events import CacheLookup
from ...recording import Made
from .. import _compat
from .._compat import caches as places
from ..hooks import shield
from ..hooks.patching import Args, Kwargs, Patch, Raised
from ..hooks.source import made
from .guarded_cache import GuardedCache, trouble

DISABLED = "fx_graph_cache_disabled"


class FxGraphCache(GuardedCache):
    name = "fx_graph_cache"
    cache = "fx_graph"
    owner = staticmethod(places.fx_graph_cache)

    def __init__(self, *args: Any):
        super().__init__(*args)
        #: thread -> what making a key raised, until torch has made a bypass of it.
        self._unkeyed: dict[int, str] = {}
        #: thread -> the graph whose module torch puts back.
        self._restoring: dict[int, Any] = {}

    @classmethod
    def probe(cls) -> None:
        super().probe()
        _compat.event_logger()
        places.codecache()
        places.compiled_fx_graph()

    def patches(self) -> list[Patch]:
        owner, module = self.owner(), places.codecache()
        return [
            *super().patches(),
            Patch(owner, "prepare_key", self._prepared, self.guarded),
            Patch(module, "compiled_fx_graph_hash", self._hashed, self.guarded),
            Patch(owner, "load_with_key", self._looked_up, self.guarded, before=self._looks_up),
            Patch(owner, "_save_graph", self._saved, self.guarded, before=self._saves),
            Patch(places.compiled_fx_graph(), "write_to_disk", self._restored, self.guarded, before=self._restores),
            Patch(module, "write_atomic", self._wrote, self.guarded),
            Patch(_compat.event_logger(), "log_instant_event", self._announced, self.guarded),
        ]

    # Keys

    def _hashed(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        if error is not None and error.__cause__ is not None:
            self._unkeyed[get_ident()] = shield.told(error.__cause__)

    def _prepared(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        cause = self._unkeyed.pop(get_ident(), None)
        if error is None and result[0] is not None:
            return
        look = LookUp(self.cache, time.time_ns(), outcome="bypass", exception_type="BypassFxGraphCache")
        self._begin(look)
        self._end(LookUp)
        if error is None:
            why = result[1].get("cache_bypass_reason") or ""
            look.reason = f"{why} ({cause})" if cause else why
        else:
            look.outcome, look.reason, look.exception_type = "failed", shield.told(error), type(error).__name__
        self._tell_look_up(look)

    # Look-ups

    def _looks_up(self, args: Args, kwargs: Kwargs) -> None:
        self._begin(LookUp(self.cache, time.time_ns()))

    def _looked_up(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        look = self._end(LookUp)
        if look is None:
            return
        look.key = _compat.argument(args, kwargs, 0, "key")
        if self.detail == "full":
            look.components = _compat.argument(args, kwargs, 1, "debug_lines")
        if error is not None:
            look.outcome, look.exception_type = "failed", type(error).__name__
            look.reason = look.reason or shield.told(error)
        elif result[0] is not None:
            columns = places.graph_columns(result[0])
            look.outcome, look.entry = "hit", {"kernels": columns["kernels"], "saved_s": columns["taken_s"]}
            look.entry["counted_again"] = places.counted_again(result[0])
        else:
            self._missed(look, result[1])
        self._tell_look_up(look)

    def _missed(self, look: LookUp, info: dict[str, Any]) -> None:
        if info.get("cache_status_detailed") == "guard_miss":
            look.outcome = "guard_miss"
            if look.found:
                look.reason = "the entry was made with other external libraries of the device"
        elif look.found:
            look.reason = "the generated code of the entry could not be put in place"

    # Stores

    def _saves(self, args: Args, kwargs: Kwargs) -> None:
        self._begin(CacheStore(self.cache, time.time_ns()))

    def _saved(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        store = self._end(CacheStore)
        if store is None:
            return
        graph = _compat.argument(args, kwargs, 1, "compiled_graph")
        store.key = _compat.argument(args, kwargs, 0, "key")
        store.is_local = bool(_compat.argument(args, kwargs, 3, "local"))
        store.entry = places.graph_columns(graph)
        if error is not None:
            store.trouble = Trouble(type(error).__name__, f"{NOT_SAVED}: {shield.told(error)}")
        elif store.is_local and store.bytes is None and store.trouble is None:
            store.trouble = Trouble(None, f"{NOT_PICKLED}: torch logged why")
        self._tell_store(store)

    # The generated module of an entry

    def _restores(self, args: Args, kwargs: Kwargs) -> None:
        self._restoring[get_ident()] = args[0]

    def _restored(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        self._restoring.pop(get_ident(), None)

    def _wrote(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        graph = self._restoring.get(get_ident())
        if graph is None:
            return
        write = CacheStore(self.cache, time.time_ns(), key=getattr(graph, "_fx_graph_cache_key", None))
        self._begin(write)
        self._end(CacheStore)
        write.bytes = len(_compat.argument(args, kwargs, 1, "content"))
        if error is not None:
            write.trouble = trouble(error)
        self.emit(_write, write)

    # What is announced only

    def _announced(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        _, name, time_ns, metadata, *_ = (*args, None)
        if name == DISABLED:
            frame = self.recorder.frames.get((metadata or {}).get("compile_id"), {})
            self.emit(_disabled, parse_cache_event(name, metadata or {}, time_ns), frame, places.why_disabled())


def _write(write: CacheStore) -> Made:
    return made(make_write_row(write))


def _disabled(lookup: CacheLookup, frame: Mapping[str, Any], reason: str) -> Made:
    return made(dataclasses.replace(add_frame(lookup, frame), reason=reason))
