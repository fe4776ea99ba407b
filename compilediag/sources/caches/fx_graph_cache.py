"""FxGraphCache: every look-up, bypass and store of a compiled graph, whoever asks for it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from ... import clock
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
from ..dynamo.torch_api import INSTANT_EVENT
from ..hooks.own_errors import describe_error
from ..hooks.patches import Args, Kwargs, Patch, Raised
from ..hooks.sink import EventSink, Made
from ..hooks.thread_state import PerThread
from ..hooks.torch_names import call_argument
from . import torch_api
from .guarded_cache import GuardedCache, make_trouble

DISABLED = "fx_graph_cache_disabled"


class FxGraphCache(GuardedCache):
    name = "fx_graph_cache"
    cache = "fx_graph"
    result_point = torch_api.FX_RESULT
    written_point = torch_api.FX_WRITTEN
    cleared_point = torch_api.FX_CLEARED
    needs = (
        *GuardedCache.needs,
        *(torch_api.FX_KEY_PREPARED, torch_api.FX_LOOKED_UP, torch_api.FX_SAVED, torch_api.FX_RESULT),
        *(torch_api.FX_WRITTEN, torch_api.FX_CLEARED, torch_api.FX_KEY_HASHED, torch_api.FILE_WRITTEN),
        *(torch_api.MODULE_RESTORED, INSTANT_EVENT),
    )

    def __init__(self, recorder: EventSink, detail: str):
        super().__init__(recorder, detail)
        #: The error of making a key, until torch has made a bypass of it.
        self._key_error: PerThread[str | None] = PerThread(lambda: None)
        #: The graph whose module torch writes again.
        self._restoring: PerThread[Any] = PerThread(lambda: None)

    def patches(self) -> list[Patch]:
        return [
            *super().patches(),
            self.watch(torch_api.FX_KEY_PREPARED, self._key_prepared),
            self.watch(torch_api.FX_KEY_HASHED, self._key_hashed),
            self.watch(torch_api.FX_LOOKED_UP, self._looked_up, self._before_look_up),
            self.watch(torch_api.FX_SAVED, self._on_saved, self._before_save),
            self.watch(torch_api.MODULE_RESTORED, self._module_restored, self._before_module),
            self.watch(torch_api.FILE_WRITTEN, self._file_written),
            self.watch(INSTANT_EVENT, self._on_announced),
        ]

    # Keys

    def _key_hashed(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        if error is not None and error.__cause__ is not None:
            self._key_error.set(describe_error(error.__cause__))

    def _key_prepared(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        cause = self._key_error.take()
        if error is None and result[0] is not None:
            return
        look = LookUp(self.cache, clock.now_ns(), outcome="bypass", exception_type="BypassFxGraphCache")
        self._begin(look)
        self._end(LookUp)
        if error is None:
            why = result[1].get("cache_bypass_reason") or ""
            look.reason = f"{why} ({cause})" if cause else why
        else:
            look.outcome, look.reason, look.exception_type = "failed", describe_error(error), type(error).__name__
        self._emit_look_up(look)

    # Look-ups

    def _before_look_up(self, args: Args, kwargs: Kwargs) -> None:
        self._begin(LookUp(self.cache, clock.now_ns()))

    def _looked_up(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        look = self._end(LookUp)
        if look is None:
            return
        look.key = call_argument(args, kwargs, 0, "key")
        if self.detail == "full":
            look.components = call_argument(args, kwargs, 1, "debug_lines")
        if error is not None:
            look.outcome, look.exception_type = "failed", type(error).__name__
            look.reason = look.reason or describe_error(error)
        elif result[0] is not None:
            columns = torch_api.graph_columns(result[0])
            look.outcome, look.entry = "hit", {"kernels": columns["kernels"], "saved_s": columns["taken_s"]}
            look.entry["counted_again"] = torch_api.repeated_counts(result[0])
        else:
            self._explain_miss(look, result[1])
        self._emit_look_up(look)

    def _explain_miss(self, look: LookUp, info: dict[str, Any]) -> None:
        if info.get("cache_status_detailed") == "guard_miss":
            look.outcome = "guard_miss"
            if look.found:
                look.reason = "the entry was compiled with other external libraries of the device"
        elif look.found:
            look.reason = "the generated code of the entry could not be written"

    # Stores

    def _before_save(self, args: Args, kwargs: Kwargs) -> None:
        self._begin(CacheStore(self.cache, clock.now_ns()))

    def _on_saved(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        store = self._end(CacheStore)
        if store is None:
            return
        graph = call_argument(args, kwargs, 1, "compiled_graph")
        store.key = call_argument(args, kwargs, 0, "key")
        store.is_local = bool(call_argument(args, kwargs, 3, "local"))
        store.entry = torch_api.graph_columns(graph)
        if error is not None:
            store.trouble = Trouble(type(error).__name__, f"{NOT_SAVED}: {describe_error(error)}")
        elif store.is_local and store.bytes is None and store.trouble is None:
            store.trouble = Trouble(None, f"{NOT_PICKLED}: torch logged why")
        self._emit_store(store)

    # The generated module of an entry

    def _before_module(self, args: Args, kwargs: Kwargs) -> None:
        self._restoring.set(args[0])

    def _module_restored(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        self._restoring.take()

    def _file_written(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        graph = self._restoring.get()
        if graph is None:
            return
        write = CacheStore(self.cache, clock.now_ns(), key=torch_api.graph_key(graph))
        self._begin(write)
        self._end(CacheStore)
        write.bytes = len(call_argument(args, kwargs, 1, "content"))
        if error is not None:
            write.trouble = make_trouble(error)
        self.emit(_make_write_rows, write)

    # What is only announced

    def _on_announced(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        _, name, time_ns, metadata, *_ = (*args, None)
        if name == DISABLED:
            _, key = self.context.keys.current()
            lookup = parse_cache_event(name, metadata or {}, time_ns, key)
            if lookup is not None:
                reason = torch_api.why_disabled()
                self.emit(_make_disabled_rows, lookup, self.context.frames.get(key or "", {}), reason)


def _make_write_rows(write: CacheStore) -> Made:
    return (make_write_row(write),)


def _make_disabled_rows(lookup: CacheLookup, frame: Mapping[str, Any], reason: str) -> Made:
    return (dataclasses.replace(add_frame(lookup, frame), reason=reason),)
