"""AOTAutogradCache: every look-up, bypass and store, with the FxGraphCache entries that an entry names."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

from ... import clock
from ...decode.records.cache_records import NOT_PICKLED, NOT_SAVED, CacheStore, LookUp, Trouble
from ..hooks.own_errors import describe_error
from ..hooks.patches import Args, Kwargs, Patch, Raised
from ..hooks.torch_names import call_argument
from . import torch_api
from .guarded_cache import GuardedCache

#: End of the reason where torch does not go on without the cache.
STRICT = "raised to the caller: strict_autograd_cache or strict_precompile is set"
OTHER_RANK = "the entry was found, but another rank found none, so all ranks compile"
GRAPH_MISSING = "a graph that the entry names is not in FxGraphCache"


class AOTAutogradCache(GuardedCache):
    """torch announces a look-up only while it logs events; what `try_load` calls sees each."""

    name = "aot_autograd_cache"
    cache = "aot_autograd"
    result_point = torch_api.AOT_RESULT
    written_point = torch_api.AOT_WRITTEN
    cleared_point = torch_api.AOT_CLEARED
    needs = (
        *GuardedCache.needs,
        *(torch_api.AOT_TRIED, torch_api.AOT_LOOKED_UP, torch_api.AOT_SAVED, torch_api.AOT_RESULT),
        *(torch_api.AOT_WRITTEN, torch_api.AOT_CLEARED, torch_api.AOT_SAVE_FAILED, torch_api.AOT_FIELD_SEARCHED),
        *(torch_api.AOT_KEY_HASHED, torch_api.AOT_GRAPHS_LOOKED_UP, torch_api.FX_GRAPH_MISS),
    )

    def patches(self) -> list[Patch]:
        return [
            *super().patches(),
            *self.watch_if_present(torch_api.AOT_RANKS_AGREED, self._ranks_agreed),
            self.watch(torch_api.AOT_TRIED, self._on_tried, self._before_try),
            self.watch(torch_api.AOT_KEY_HASHED, self._key_hashed),
            self.watch(torch_api.AOT_LOOKED_UP, self._looked_up),
            self.watch(torch_api.AOT_GRAPHS_LOOKED_UP, self._graphs_looked_up),
            self.watch(torch_api.AOT_SAVED, self._on_saved, self._before_save),
            self.watch(torch_api.AOT_FIELD_SEARCHED, self._field_searched),
            self.watch(torch_api.AOT_SAVE_FAILED, self._save_failed),
        ]

    # Look-ups

    def _before_try(self, args: Args, kwargs: Kwargs) -> None:
        self._begin(LookUp(self.cache, clock.now_ns()))

    def _key_hashed(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        look = self._top(LookUp)
        if look is None:
            return
        if error is not None:
            self._bypass(look, error)
        else:
            look.key = result[0]
            look.components = result[1] if self.detail == "full" else None

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

    def _ranks_agreed(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        look = self._top(LookUp)
        if look is not None and error is None and call_argument(args, kwargs, 0, "local_hit") and not result:
            look.outcome, look.reason = "miss", OTHER_RANK

    def _graphs_looked_up(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        look = self._top(LookUp)
        if look is None:
            return
        if error is None:
            look.outcome = "hit"
        elif torch_api.is_fx_graph_miss(error):
            look.outcome, look.reason, look.exception_type = "miss", GRAPH_MISSING, type(error).__name__
        else:
            self._bypass(look, error)

    def _bypass(self, look: LookUp, error: BaseException) -> None:
        why, cause = " ".join(str(error).split()), error.__cause__
        if cause is not None and str(cause) != str(error):
            why = f"{why} ({describe_error(cause)})"
        look.outcome, look.reason, look.exception_type = "bypass", why or None, type(error).__name__

    def _on_tried(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        look = self._end(LookUp)
        if look is None:
            return
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

    def _before_save(self, args: Args, kwargs: Kwargs) -> None:
        self._begin(CacheStore(self.cache, clock.now_ns()))

    def _field_searched(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        """Torch has just caught an error of pickling, and searches for the field that cannot be pickled."""
        store, raised = self._top(CacheStore), sys.exc_info()[1]
        if store is not None and raised is not None:
            field = f" (field {result})" if result else ""
            store.trouble = Trouble(type(raised).__name__, f"{NOT_PICKLED}: {describe_error(raised)}{field}")

    def _save_failed(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        """Torch has caught the error of a store."""
        store, raised = self._top(CacheStore), call_argument(args, kwargs, 0, "e")
        if store is None:
            return
        store.is_bypass = bool(call_argument(args, kwargs, 2, "is_bypass"))
        if store.trouble is None:
            why = " ".join(str(raised).split()) if store.is_bypass else f"{NOT_SAVED}: {describe_error(raised)}"
            store.trouble = Trouble(type(raised).__name__, why)

    def _on_saved(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        store = self._end(CacheStore)
        if store is None:
            return
        store.key = call_argument(args, kwargs, 0, "key")
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
