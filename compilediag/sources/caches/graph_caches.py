"""The caches of compiled graphs: FxGraphCache, AOTAutogradCache, the bundle of triton kernels beside an entry, and each
request to a remote cache.

A look-up or store of one of the first two is described by several hooks.

The outer hook of a call puts a record on its thread's list and removes it when the call ends; the hooks of what torch
calls in between fill it in. A look-up of FxGraphCache within one of AOTAutogradCache is a record on top of the other.
"""

from __future__ import annotations

import dataclasses
import functools
import logging
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

from ...decode.records.cache_records import (
    NOT_LISTED,
    NOT_PICKLED,
    NOT_SAVED,
    NOT_SEARCHED,
    NOT_WRITTEN,
    CacheStore,
    Fetch,
    LookUp,
    Trouble,
    describe_failing_guards,
    frame_columns,
    make_fetch_row,
    make_lookup_rows,
    make_store_row,
    name_remote_cache,
    parse_cache_event,
)
from ...events import Artifact, CacheLookup
from ...system import clock
from ...system.own_errors import describe_error
from ..compile_context import EventSink, Made, PerThread
from ..dynamo.torch_api import INSTANT_EVENT
from ..hooks.patches import Args, Kwargs, Raised
from ..hooks.source import CacheSource, Callback, Hook, Source, hook, hook_before
from ..hooks.torch_names import HookPoint, TorchName, call_argument, call_arguments, require_triton
from . import torch_api
from .key_history import shared_history

Record = TypeVar("Record", LookUp, CacheStore)
#: The reason of a guard miss without a single failing guard: AOTAutogradCache asks for the entry that it was saved
#: with.
NOT_THE_SAME = "the entry was saved with other guards than the aot_autograd entry names"


def make_trouble(error: BaseException, what: str | None = None, is_write: bool = False) -> Trouble:
    """What an error was, after `what` has failed."""
    text = describe_error(error)
    return Trouble(type(error).__name__, text if what is None else f"{what}: {text}", is_write)


class GuardedCache(CacheSource):
    """The hooks that both caches have. `cache` is the name in the rows; the points are those of torch's class of it."""

    cache: ClassVar[str]
    result_point: ClassVar[HookPoint]
    written_point: ClassVar[HookPoint]
    cleared_point: ClassVar[HookPoint]
    needs: ClassVar[tuple[TorchName, ...]] = (
        *(torch_api.CACHE_LOGGER, torch_api.REGISTERED_CACHES, torch_api.CLEAR_CACHES, torch_api.FRESH_CACHE),
    )

    def __init__(self, recorder: EventSink, detail: str):
        super().__init__(recorder, detail)
        self._history = shared_history(self.context)
        self._registered: list[Any] = []
        self._filter = Callback(self, self._read_log)
        #: Called by torch with all caches that it clears: a fresh cache directory begins or ends.
        self.cache_clear = Callback(self, self._caches_cleared)

    @classmethod
    def list_hooks(cls) -> list[Hook]:
        return [
            *super().list_hooks(),
            Hook(cls.result_point, cls._result_counted),
            Hook(cls.written_point, cls._entry_written),
            Hook(cls.cleared_point, cls._on_cleared),
        ]

    @functools.cached_property
    def _owner(self) -> Any:
        return self.cleared_point.owner()

    def open(self) -> None:
        torch_api.cache_logger().addFilter(self._filter)
        self._registered = torch_api.REGISTERED_CACHES.find()
        self._registered.append(self)

    def close(self) -> None:
        torch_api.cache_logger().removeFilter(self._filter)
        if self in self._registered:
            self._registered.remove(self)

    # Open records

    def forget_calls(self) -> None:
        super().forget_calls()
        self.context.cache_records.clear()

    def _begin(self, record: Record) -> Record:
        record.compile_id, record.compile_key = self.context.keys.current()
        record.frame = self.context.frames.get(record.compile_key or "", {})
        self.context.cache_records.append(record)
        return record

    def before_look_up(self, args: Args, kwargs: Kwargs) -> LookUp:
        return self._begin(LookUp(self.cache, clock.now_ns()))

    def before_save(self, args: Args, kwargs: Kwargs) -> CacheStore:
        return self._begin(CacheStore(self.cache, clock.now_ns()))

    def _end(self, record: Record) -> Record:
        """Remove a record, and what an interrupt has left above it."""
        running = self.context.cache_records
        del running[next((at for at, each in enumerate(running) if each is record), len(running)) :]
        record.duration_s = (clock.now_ns() - record.time_ns) / 1e9
        return record

    def _top(self, kind: type[Record]) -> Record | None:
        """The thread's innermost record, if it is of this cache and kind."""
        record = self.context.cache_records[-1:]
        return record[0] if record and isinstance(record[0], kind) and record[0].cache == self.cache else None

    # What happens during a look-up or store

    @hook(torch_api.ENTRIES_SEARCHED)
    def _entries_searched(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        look = self._top(LookUp)
        if look is None or args[0] is not self._owner:
            return
        key, local, evaluate, hints = call_arguments(args, kwargs, key=1, local=2, evaluate_guards=4, hints=5)
        look.key, look.is_local = key, bool(local)
        if error is not None:
            look.troubles["local"] = make_trouble(error)
            look.reason = f"{NOT_SEARCHED}: {describe_error(error)}"
            return
        _, content, info = result
        look.bytes = None if content is None else len(content)
        if info["cache_status_detailed"] == "guard_miss":
            expression = info["cache_status_guard_expr"]
            if len(self.context.cache_records) > 1:
                look.guard = f"{expression}: {NOT_THE_SAME}"
            else:
                values = {f"L['t{i}']": hint for i, hint in enumerate(hints)}
                look.guard = describe_failing_guards(expression, lambda text: bool(evaluate(text, hints)), values)
        elif content is None and local and not look.troubles and torch_api.has_files(self._owner, key):
            look.troubles["local"] = Trouble(None, "torch logged why")

    def _result_counted(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        """Torch counts which tier had the entry."""
        look = self._top(LookUp)
        if look is not None:
            is_local, is_remote = call_arguments(args, kwargs, local_hit=2, remote_hit=4)
            look.found = "local" if is_local else "remote" if is_remote else None

    def _entry_written(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        store = self._top(CacheStore)
        if store is None:
            return
        if error is None:
            store.bytes = len(call_argument(args, kwargs, 1, "content"))
        else:
            store.trouble = make_trouble(error, NOT_WRITTEN, is_write=True)

    def _read_log(self, record: logging.LogRecord) -> None:
        """Only the log has the error of an entry that could not be loaded or pickled."""
        error = record.exc_info[1] if record.exc_info else None
        if error is None:
            return
        message = str(record.msg)
        look, store = self._top(LookUp), self._top(CacheStore)
        if look is not None and "unable to load" in message:
            # Before torch 2.15 only the remote tier's message begins with the cache's name.
            is_remote = message.startswith("%s") and (look.fetch is not None or "remote" in look.troubles)
            look.troubles["remote" if is_remote else "local"] = make_trouble(error)
        elif look is not None and "unable to list" in message:
            look.troubles["local"] = make_trouble(error)
            look.reason = f"{NOT_LISTED}: {describe_error(error)}"
        elif store is not None and store.trouble is None:
            is_write = "serialize" not in message
            store.trouble = make_trouble(error, NOT_WRITTEN if is_write else NOT_PICKLED, is_write)

    # Rows

    def _emit_look_up(self, look: LookUp) -> None:
        self.emit(self._make_look_up_rows, look)

    def _make_look_up_rows(self, look: LookUp) -> Made:
        rows = make_lookup_rows(look)
        if self.detail != "full":
            return rows
        at = next((at for at, row in enumerate(rows) if row.outcome == "hit"), 0)
        rows[at], key = self._history.compare(rows[at], look.components or ())
        # The parts of the key, for a later comparison with those of another session.
        parts = () if key is None else self._history.texts.write(key)
        of_row = {name: getattr(rows[at], name) for name in ("time_ns", "compile_id", "compile_key")}
        return [*rows, *((Artifact(**of_row, name=name), text) for name, text in parts)]

    def _emit_store(self, store: CacheStore) -> None:
        """The source of remote caches has the row of a failed put; here are the stores that failed before it."""
        if store.bytes is not None:
            store.trouble = None
        if store.is_local or (store.trouble is not None and not store.trouble.is_write):
            self.emit(make_store_row, store)

    def _on_cleared(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        self._emit_clear(f"{self._owner.__name__}.clear()")

    def _caches_cleared(self) -> None:
        stage = torch_api.fresh_cache_stage()
        if stage is not None:
            what = "an empty directory" if stage == "begins" else "back in the directory before"
            self._emit_clear(f"fresh_cache {stage}: {what}")

    def _emit_clear(self, reason: str) -> None:
        self.emit_lookup(self.cache, "local", "clear", "cleared", reason=reason)


DISABLED = "fx_graph_cache_disabled"
NOT_READ = "the artifacts cannot be read: torch logged why"


class FxGraphCache(GuardedCache):
    """Every look-up, bypass and store of a compiled graph, whoever asks for it."""

    name = "fx_graph_cache"
    cache = "fx_graph"
    result_point = torch_api.FX_RESULT
    written_point = torch_api.FX_WRITTEN
    cleared_point = torch_api.FX_CLEARED
    #: The error of making a key, until torch has made a bypass of it.
    _key_error = PerThread[str | None](lambda: None)
    #: The graph whose module torch writes again.
    _restoring = PerThread[Any](lambda: None)

    # Keys

    @hook(torch_api.FX_KEY_HASHED)
    def _key_hashed(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        if error is not None and error.__cause__ is not None:
            self._key_error = describe_error(error.__cause__)

    @hook(torch_api.FX_KEY_PREPARED)
    def _key_prepared(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        cause, self._key_error = self._key_error, None
        if error is None and result[0] is not None:
            return
        look = LookUp(self.cache, clock.now_ns(), outcome="bypass", exception_type="BypassFxGraphCache")
        self._end(self._begin(look))
        if error is None:
            why = result[1].get("cache_bypass_reason") or ""
            look.reason = f"{why} ({cause})" if cause else why
        else:
            look.outcome, look.reason, look.exception_type = "failed", describe_error(error), type(error).__name__
        self._emit_look_up(look)

    # Look-ups

    @hook(torch_api.FX_LOOKED_UP, before=GuardedCache.before_look_up)
    def _looked_up(self, args: Args, kwargs: Kwargs, result: Any, error: Raised, look: LookUp | None) -> None:
        if look is None:
            return
        self._end(look).key = call_argument(args, kwargs, 0, "key")
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
            is_guard_miss = result[1].get("cache_status_detailed") == "guard_miss"
            look.outcome = "guard_miss" if is_guard_miss else look.outcome
            if look.found and is_guard_miss:
                look.reason = "the entry was compiled with other external libraries of the device"
            elif look.found:
                look.reason = "the generated code of the entry could not be written"
        self._emit_look_up(look)

    # Stores

    @hook(torch_api.FX_SAVED, before=GuardedCache.before_save)
    def _on_saved(self, args: Args, kwargs: Kwargs, result: Any, error: Raised, store: CacheStore | None) -> None:
        if store is None:
            return
        graph = call_argument(args, kwargs, 1, "compiled_graph")
        self._end(store).key = call_argument(args, kwargs, 0, "key")
        store.is_local = bool(call_argument(args, kwargs, 3, "local"))
        store.entry = torch_api.graph_columns(graph)
        if error is not None:
            store.trouble = make_trouble(error, NOT_SAVED)
        elif store.is_local and store.bytes is None and store.trouble is None:
            store.trouble = Trouble(None, f"{NOT_PICKLED}: torch logged why")
        self._emit_store(store)

    # The generated module of an entry

    @hook_before(torch_api.MODULE_RESTORED)
    def _before_module(self, args: Args, kwargs: Kwargs) -> None:
        self._restoring = args[0]

    @hook(torch_api.MODULE_RESTORED)
    def _module_restored(self, args: Args, kwargs: Kwargs, result: Any, error: Raised, begun: None) -> None:
        self._restoring = None

    @hook(torch_api.FILE_WRITTEN)
    def _file_written(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        graph = self._restoring
        if graph is None:
            return
        write = self._end(self._begin(CacheStore(self.cache, clock.now_ns(), key=torch_api.graph_key(graph))))
        write.bytes = len(call_argument(args, kwargs, 1, "content"))
        if error is not None:
            write.trouble = make_trouble(error)
        self.emit(make_store_row, write, "write", "written")

    # Artifacts of all caches, which the program loads at once

    @hook(torch_api.ARTIFACTS_READ)
    def _artifacts_read(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        """torch logs that it cannot read them, and goes on."""
        if result is None:
            self.emit_lookup(None, "local", "load", "failed", error, reason=NOT_READ)

    @hook(torch_api.ARTIFACTS_LOADED)
    def _artifacts_loaded(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        if error is not None:
            self.emit_lookup(None, "local", "load", "failed", error)
        else:
            artifacts = torch_api.list_artifacts(call_argument(args, kwargs, 0, "artifacts"))
            common: dict[str, Any] = {"time_ns": clock.now_ns(), "tier": "local", "action": "load"}
            common |= {"outcome": "loaded", **self.context.current_columns()}
            self.emit(lambda: [CacheLookup(cache=c, key=key, bytes=size, **common) for c, key, size in artifacts])

    # What is only announced

    @hook(INSTANT_EVENT)
    def _on_announced(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        _, name, time_ns, metadata, *_ = (*args, None)
        if name == DISABLED:
            _, key = self.context.keys.current()
            lookup = parse_cache_event(name, metadata or {}, time_ns, key)
            if lookup is not None:
                reason, frame = torch_api.why_disabled(), self.context.frames.get(key or "", {})
                self.emit(lambda: dataclasses.replace(lookup, reason=reason, **frame_columns(frame)))


#: End of the reason where torch does not go on without the cache.
STRICT = "raised to the caller: strict_autograd_cache or strict_precompile is set"
OTHER_RANK = "the entry was found, but another rank found none, so all ranks compile"
GRAPH_MISSING = "a graph that the entry names is not in FxGraphCache"


class AOTAutogradCache(GuardedCache):
    """Every look-up, bypass and store, with the FxGraphCache entries that an entry names.

    torch announces a look-up only while it logs events; what `try_load` calls sees each."""

    name = "aot_autograd_cache"
    cache = "aot_autograd"
    result_point = torch_api.AOT_RESULT
    written_point = torch_api.AOT_WRITTEN
    cleared_point = torch_api.AOT_CLEARED
    needs = (*GuardedCache.needs, torch_api.FX_GRAPH_MISS)

    # Look-ups

    @hook(torch_api.AOT_KEY_HASHED)
    def _key_hashed(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        look = self._top(LookUp)
        if look is None:
            return
        if error is not None:
            self._bypass(look, error)
        else:
            look.key = result[0]
            look.components = result[1] if self.detail == "full" else None

    @hook(torch_api.AOT_LOOKED_UP)
    def _looked_up(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        look = self._top(LookUp)
        if look is None:
            return
        if error is not None:
            self._bypass(look, error)
        elif result is not None:
            # Until its graphs are found as well.
            again = torch_api.repeated_counts(*torch_api.bundled_graphs(result[0]))
            look.outcome, look.entry = "bypass", {**torch_api.entry_columns(result[0]), "counted_again": again}
        elif look.guard is not None:
            look.outcome = "guard_miss"

    @hook(torch_api.AOT_RANKS_AGREED)
    def _ranks_agreed(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        look = self._top(LookUp)
        if look is not None and error is None and call_argument(args, kwargs, 0, "local_hit") and not result:
            look.outcome, look.reason = "miss", OTHER_RANK

    @hook(torch_api.AOT_GRAPHS_LOOKED_UP)
    def _graphs_looked_up(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        look = self._top(LookUp)
        if look is None:
            return
        if error is None:
            look.outcome = "hit"
        elif isinstance(error, torch_api.FX_GRAPH_MISS.get_loaded()):
            look.outcome, look.reason, look.exception_type = "miss", GRAPH_MISSING, type(error).__name__
        else:
            self._bypass(look, error)

    def _bypass(self, look: LookUp, error: BaseException) -> None:
        why, cause = " ".join(str(error).split()), error.__cause__
        if cause is not None and str(cause) != str(error):
            why = f"{why} ({describe_error(cause)})"
        look.outcome, look.reason, look.exception_type = "bypass", why or None, type(error).__name__

    @hook(torch_api.AOT_TRIED, before=GuardedCache.before_look_up)
    def _on_tried(self, args: Args, kwargs: Kwargs, result: Any, error: Raised, look: LookUp | None) -> None:
        if look is None:
            return
        self._end(look)
        if error is not None:
            if look.reason is None:
                self._bypass(look, error)
            look.reason = f"{look.reason or type(error).__name__} ({STRICT})"
        taken = {f"{way}_saved_s": look.entry.pop(f"{way}_s", None) for way in ("forward", "backward")}
        if look.outcome == "hit":
            look.entry |= taken
            look.entry["saved_s"] = _total(taken.values())
        else:
            look.entry.pop("counted_again", None)
        self._emit_look_up(look)

    # Stores

    @hook(torch_api.AOT_FIELD_SEARCHED)
    def _field_searched(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        """Torch has just caught an error of pickling, and searches for the field that cannot be pickled."""
        store, raised = self._top(CacheStore), sys.exc_info()[1]
        if store is not None and raised is not None:
            field = f" (field {result})" if result else ""
            store.trouble = Trouble(type(raised).__name__, f"{NOT_PICKLED}: {describe_error(raised)}{field}")

    @hook(torch_api.AOT_SAVE_FAILED)
    def _save_failed(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        """Torch has caught the error of a store."""
        store, raised = self._top(CacheStore), call_argument(args, kwargs, 0, "e")
        if store is None:
            return
        store.is_bypass = bool(call_argument(args, kwargs, 2, "is_bypass"))
        if store.trouble is None:
            why = " ".join(str(raised).split()) if store.is_bypass else f"{NOT_SAVED}: {describe_error(raised)}"
            store.trouble = Trouble(type(raised).__name__, why)

    @hook(torch_api.AOT_SAVED, before=GuardedCache.before_save)
    def _on_saved(self, args: Args, kwargs: Kwargs, result: Any, error: Raised, store: CacheStore | None) -> None:
        if store is None:
            return
        self._end(store).key = call_argument(args, kwargs, 0, "key")
        columns = torch_api.entry_columns(call_argument(args, kwargs, 1, "entry"))
        taken = [columns.pop(f"{way}_s") for way in ("forward", "backward")]
        store.entry = {**columns, "taken_s": _total(taken)}
        if store.bytes is None:
            trouble = store.trouble = store.trouble or Trouble(None, f"{NOT_PICKLED}: torch logged why")
            if error is not None:
                trouble.text += f" ({STRICT})"
        self._emit_store(store)


def _total(seconds: Iterable[float | None]) -> float | None:
    known = [s for s in seconds if s is not None]
    return sum(known) if known else None


class TritonBundle(CacheSource):
    """Compiled kernels that are stored with an FxGraphCache entry, as files and as launchers."""

    name = "triton_bundle"
    checks = (require_triton,)

    @hook(torch_api.BUNDLE_COLLECTED)
    def _on_collected(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        """A bundle of files (local), and of launchers that need no triton (memory)."""
        if error is not None:
            self._emit_row("store", "local", "failed", error)
            return
        bundle, _ = result
        if bundle.kernel_artifacts:
            self._emit_row("store", "local", "saved", **torch_api.bundle_columns(bundle.kernel_artifacts))
        if bundle.static_autotuners:
            self._emit_row("store", "memory", "saved", kernels=len(bundle.static_autotuners))

    @hook(torch_api.BUNDLE_READ)
    def _read(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        bundle = call_argument(args, kwargs, 0, "bundle")
        if error is not None:
            self._emit_row("look_up", "local", "failed", error)
        elif result is not None and bundle.kernel_artifacts:
            written = torch_api.written_kernels(bundle, result)
            if written:
                self._emit_row("write", "local", "written", **torch_api.bundle_columns(written))
            if len(written) < len(bundle.kernel_artifacts):
                there = len(bundle.kernel_artifacts) - len(written)
                self._emit_row("look_up", "local", "hit", kernels=there, reason="the files already exist")

    @hook(torch_api.LAUNCHERS_LOADED)
    def _on_loaded(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        wanted = call_argument(args, kwargs, 1, "static_autotuners") or ()
        if error is not None:
            self._emit_row("look_up", "memory", "failed", error)
            return
        if result:
            self._emit_row("look_up", "memory", "hit", kernels=len(result))
        if len(result) < len(wanted):
            missing = len(wanted) - len(result)
            self._emit_row("look_up", "memory", "failed", kernels=missing, reason="the machine code is missing")

    def _emit_row(self, action: str, tier: str, outcome: str, error: Raised = None, **columns: Any) -> None:
        self.emit_lookup("triton_bundle", tier, action, outcome, error, **columns)


# Remote caches


@dataclass(slots=True)
class Transfer:
    """A get or put that runs, with the connection that it began with."""

    fetch: Fetch
    client: Any = None


class RemoteCache(Source):
    """The answer to a look-up of FxGraphCache or AOTAutogradCache is added to the record of that look-up, which
    alone knows whether the entry could be used; all other answers are rows of this source.
    """

    name = "remote_cache"
    _transfer = PerThread[Transfer | None](lambda: None)

    @hook_before(torch_api.REMOTE_GET, torch_api.REMOTE_PUT)
    def _before_request(self, args: Args, kwargs: Kwargs) -> None:
        if torch_api.is_remote(args[0]):
            self._transfer = Transfer(self._make_fetch(args[0], call_argument(args, kwargs, 1, "key")))

    def _make_fetch(self, cache: Any, key: str | None) -> Fetch:
        compile_id, compile_key = self.context.keys.current()
        frame = self.context.frames.get(compile_key or "", {})
        return Fetch(name_remote_cache(type(cache).__name__), clock.now_ns(), compile_id, compile_key, frame, key)

    # Bytes

    @hook_before(torch_api.BACKEND_GET, torch_api.BACKEND_PUT)
    def _before_transfer(self, args: Args, kwargs: Kwargs) -> None:
        transfer = self._transfer
        if transfer is not None and torch_api.is_redis(args[0]):
            transfer.client = torch_api.redis_client(args[0])
            transfer.fetch.is_given_up = transfer.client is None

    @hook(torch_api.BACKEND_GET)
    def _on_received(self, args: Args, kwargs: Kwargs, result: Any, error: Raised, begun: None) -> None:
        if error is None:
            self._count_bytes(args[0], result)

    @hook(torch_api.BACKEND_PUT)
    def _on_sent(self, args: Args, kwargs: Kwargs, result: Any, error: Raised, begun: None) -> None:
        if error is None:
            self._count_bytes(args[0], call_argument(args, kwargs, 2, "data"))

    def _count_bytes(self, backend: Any, data: Any) -> None:
        transfer = self._transfer
        if transfer is None or transfer.fetch.is_given_up:
            return
        if transfer.client is not None and torch_api.redis_client(backend) is None:
            text = f"no connection to Redis at {torch_api.redis_address(transfer.client)}: torch goes on without it"
            transfer.fetch.trouble = Trouble("ConnectionError", text)
        elif isinstance(data, (bytes, str)):
            transfer.fetch.bytes = len(data)

    # Outcomes

    @hook(torch_api.REMOTE_GET)
    def _got(self, args: Args, kwargs: Kwargs, result: Any, error: Raised, begun: None) -> None:
        fetch = self._end(error)
        if fetch is None:
            return
        running = self.context.cache_records
        look = running[-1] if running else None
        if isinstance(look, LookUp) and look.cache == fetch.cache:
            if error is None:
                look.fetch = fetch
                return
            if fetch.trouble is not None:
                look.troubles["remote"] = fetch.trouble
        self.emit(make_fetch_row, fetch)

    @hook(torch_api.REMOTE_PUT)
    def _put(self, args: Args, kwargs: Kwargs, result: Any, error: Raised, begun: None) -> None:
        fetch = self._end(error)
        if fetch is None:
            return
        value, fetch.is_put = call_argument(args, kwargs, 2, "value"), True
        taken_ms = value.get("time_taken_ms") if isinstance(value, dict) else None
        fetch.taken_s = taken_ms / 1e3 if isinstance(taken_ms, (int, float)) else None
        self.emit(make_fetch_row, fetch)

    def _end(self, error: Raised) -> Fetch | None:
        transfer, self._transfer = self._transfer, None
        if transfer is None:
            return None
        fetch = transfer.fetch
        fetch.duration_s = (clock.now_ns() - fetch.time_ns) / 1e9
        if error is not None:
            fetch.trouble, fetch.is_raised = make_trouble(error), True
        return fetch

    @hook(torch_api.REDIS_CREATED)
    def _cache_created(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        """torch logs that a cache could not be created (no package redis), and goes on without its remote tier."""
        if error is not None:
            fetch = self._make_fetch(args[0], None)
            fetch.trouble = make_trouble(error)
            self.emit(make_fetch_row, fetch)
