"""What the sources of FxGraphCache and AOTAutogradCache share: a look-up or store that several hooks describe.

The outer hook of a call puts a record on its thread's list and removes it when the call ends; the hooks of what torch
calls in between fill it in. A look-up of FxGraphCache within one of AOTAutogradCache is a record on top of the other.
"""

from __future__ import annotations

import logging
from typing import Any, ClassVar, TypeVar

from ... import clock
from ...decode.records.cache_records import (
    NOT_LISTED,
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
from ..hooks.own_errors import describe_error
from ..hooks.patches import Args, Kwargs, Patch, Raised
from ..hooks.sink import EventSink, Made
from ..hooks.source import Source
from ..hooks.torch_names import HookPoint, TorchName, call_argument
from . import torch_api
from .cache_keys import shared_history

Record = TypeVar("Record", LookUp, CacheStore)
#: The reason of a guard miss without a single failing guard: AOTAutogradCache asks for the entry that it was saved
#: with.
NOT_THE_SAME = "the entry was saved with other guards than the aot_autograd entry names"


def make_trouble(error: BaseException) -> Trouble:
    return Trouble(type(error).__name__, describe_error(error))


class GuardedCache(Source):
    """The hooks that both caches have. `cache` is the name in the rows; the points are those of torch's class of it."""

    cache: ClassVar[str]
    result_point: ClassVar[HookPoint]
    written_point: ClassVar[HookPoint]
    cleared_point: ClassVar[HookPoint]
    needs: ClassVar[tuple[TorchName, ...]] = (
        *(torch_api.ENTRIES_SEARCHED, torch_api.CACHE_LOGGER, torch_api.REGISTERED_CACHES),
        *(torch_api.CLEAR_CACHES, torch_api.FRESH_CACHE),
    )

    def __init__(self, recorder: EventSink, detail: str):
        super().__init__(recorder, detail)
        self._history = shared_history(self.context)
        self._open = self.context.cache_records
        self._owner: Any = None
        self._registered: list[Any] = []

    def patches(self) -> list[Patch]:
        self._owner = self.cleared_point.owner()
        return [
            self.watch(torch_api.ENTRIES_SEARCHED, self._entries_searched),
            self.watch(self.result_point, self._result_counted),
            self.watch(self.written_point, self._entry_written),
            self.watch(self.cleared_point, self._on_cleared),
        ]

    def open(self) -> None:
        torch_api.cache_logger().addFilter(self._filter)
        self._registered = torch_api.registered_caches()
        self._registered.append(self)

    def close(self) -> None:
        torch_api.cache_logger().removeFilter(self._filter)
        if self in self._registered:
            self._registered.remove(self)

    # Open records

    def _begin(self, record: LookUp | CacheStore) -> None:
        record.compile_id, record.compile_key = self.context.keys.current()
        record.frame = self.context.frames.get(record.compile_key or "", {})
        self._open.get().append(record)

    def _end(self, kind: type[Record]) -> Record | None:
        """Remove this cache's innermost record of a kind; None if the call began before the watch did."""
        running = self._open.get()
        for at in reversed(range(len(running))):
            record = running[at]
            if isinstance(record, kind) and record.cache == self.cache:
                del running[at:]
                record.duration_s = (clock.now_ns() - record.time_ns) / 1e9
                return record
        return None

    def _top(self, kind: type[Record]) -> Record | None:
        """The thread's innermost record, if it is of this cache and kind."""
        record = self._open.get()[-1:]
        return record[0] if record and isinstance(record[0], kind) and record[0].cache == self.cache else None

    # What happens during a look-up or store

    def _entries_searched(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        """Torch has searched the entries of a key."""
        look = self._top(LookUp)
        if look is None or args[0] is not self._owner:
            return
        key, local, _, evaluate, hints = (
            call_argument(args, kwargs, at, name)
            for at, name in enumerate(("key", "local", "remote_cache", "evaluate_guards", "hints"), 1)
        )
        look.key, look.is_local = key, bool(local)
        if error is not None:
            look.troubles["local"] = make_trouble(error)
            look.reason = f"{NOT_SEARCHED}: {describe_error(error)}"
            return
        _, content, info = result
        look.bytes = None if content is None else len(content)
        if info["cache_status_detailed"] == "guard_miss":
            look.guard = self._describe_failing(info["cache_status_guard_expr"], evaluate, hints)
        elif content is None and local and not look.troubles and torch_api.has_files(self._owner, key):
            look.troubles["local"] = Trouble(None, "torch logged why")

    def _describe_failing(self, expression: str, evaluate: Any, hints: Any) -> str:
        if len(self._open.get()) > 1:
            return f"{expression}: {NOT_THE_SAME}"
        values = {f"L['t{i}']": hint for i, hint in enumerate(hints)}
        return describe_failing_guards(expression, torch_api.guard_evaluator(evaluate, hints), values)

    def _result_counted(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        """Torch counts which tier had the entry."""
        look = self._top(LookUp)
        if look is not None:
            tiers = {"local": (2, "local_hit"), "remote": (4, "remote_hit")}
            look.found = next((tier for tier, at in tiers.items() if call_argument(args, kwargs, *at)), None)

    def _entry_written(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        store = self._top(CacheStore)
        if store is None:
            return
        if error is None:
            store.bytes = len(call_argument(args, kwargs, 1, "content"))
        else:
            store.trouble = Trouble(type(error).__name__, f"{NOT_WRITTEN}: {describe_error(error)}", is_write=True)

    def _filter(self, record: logging.LogRecord) -> bool:
        """A log filter that keeps every record. Only the log has the error of an entry that could not be loaded or
        pickled.
        """
        try:
            if record.exc_info and record.exc_info[1] is not None:
                self.run_shielded(self._error_logged, str(record.msg), record.exc_info[1])
        except RecursionError as error:
            self.escaped.append(error)
        except BaseException as error:
            self.handle_escaped(error)
        return True

    def _error_logged(self, message: str, error: BaseException) -> None:
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
            what = NOT_WRITTEN if is_write else NOT_PICKLED
            store.trouble = Trouble(type(error).__name__, f"{what}: {describe_error(error)}", is_write)

    # Rows

    def _emit_look_up(self, look: LookUp) -> None:
        self.emit(self._make_look_up_rows, look)

    def _make_look_up_rows(self, look: LookUp) -> Made:
        rows = make_lookup_rows(look)
        if self.detail == "full":
            at = next((at for at, row in enumerate(rows) if row.outcome == "hit"), 0)
            rows[at] = self._history.compare(rows[at], look.components or ())
        return rows

    def _emit_store(self, store: CacheStore) -> None:
        """The source of remote caches has the row of a failed put; here are the stores that failed before it."""
        if store.bytes is not None:
            store.trouble = None
        if store.is_local or (store.trouble is not None and not store.trouble.is_write):
            self.emit(_make_store_rows, store)

    def _on_cleared(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        self._emit_clear(f"{self._owner.__name__}.clear()")

    def cache_clear(self) -> None:
        """Called by torch with all caches that it clears: a fresh cache directory begins or ends."""
        try:
            self.run_shielded(self._caches_cleared)
        except RecursionError as error:
            self.escaped.append(error)
        except BaseException as error:
            self.handle_escaped(error)

    def _caches_cleared(self) -> None:
        stage = torch_api.fresh_cache_stage()
        if stage is not None:
            what = "an empty directory" if stage == "begins" else "back in the directory before"
            self._emit_clear(f"fresh_cache {stage}: {what}")

    def _emit_clear(self, reason: str) -> None:
        self.emit_event(
            CacheLookup(
                time_ns=clock.now_ns(),
                cache=self.cache,
                tier="local",
                action="clear",
                outcome="cleared",
                reason=reason,
                **self.context.current_columns(),
            )
        )


def _make_store_rows(store: CacheStore) -> Made:
    return (make_store_row(store),)
