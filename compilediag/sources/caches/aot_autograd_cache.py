"""AOTAutogradCache: every look-up, bypass and store, with the FxGraphCache entries that an entry names."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable
from typing import Any

from ...decode.records.cache_records import NOT_PICKLED, NOT_SAVED, CacheStore, LookUp, Trouble
from .. import _compat
from .._compat import caches as places
from ..hooks import shield
from ..hooks.patching import Args, Kwargs, Patch, Raised
from .guarded_cache import GuardedCache

#: What a reason ends with where torch does not go on without the cache.
STRICT = "raised to the caller: strict_autograd_cache or strict_precompile is set"
GRAPH_MISSING = "a graph that the entry names is not in FxGraphCache"


class AOTAutogradCache(GuardedCache):
    """torch announces a look-up only while it logs events; what `try_load` calls sees each."""

    name = "aot_autograd_cache"
    cache = "aot_autograd"
    owner = staticmethod(places.aot_autograd_cache)

    @classmethod
    def probe(cls) -> None:
        super().probe()
        places.autograd_cache()
        places.autograd_result()

    def patches(self) -> list[Patch]:
        owner = self.owner()
        return [
            *super().patches(),
            Patch(owner, "try_load", self._tried, self.guarded, before=self._tries),
            Patch(places.autograd_cache(), "autograd_cache_key", self._keyed, self.guarded),
            Patch(owner, "_lookup", self._looked_up, self.guarded),
            Patch(places.autograd_result(), "wrap_post_compile", self._wrapped, self.guarded),
            Patch(owner, "save", self._saved, self.guarded, before=self._saves),
            Patch(owner, "_find_unpicklable_field", self._unpickled, self.guarded),
            Patch(owner, "_handle_save_error", self._unsaved, self.guarded),
        ]

    # Look-ups

    def _tries(self, args: Args, kwargs: Kwargs) -> None:
        self._begin(LookUp(self.cache, time.time_ns()))

    def _keyed(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        look = self._top(LookUp)
        if look is None:
            return
        if error is not None:
            self._bypassed(look, error)
        else:
            look.key = result[0]
            look.components = result[1] if self.detail == "full" else None

    def _looked_up(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        look = self._top(LookUp)
        if look is None:
            return
        if error is not None:
            self._bypassed(look, error)
        elif result is not None:
            # Until it is seen to be wrapped as well.
            again = places.counted_again(*places.bundled_graphs(result[0]))
            look.outcome, look.entry = "bypass", {**places.entry_columns(result[0]), "counted_again": again}
        elif look.guard is not None:
            look.outcome = "guard_miss"

    def _wrapped(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        look = self._top(LookUp)
        if look is None:
            return
        if error is None:
            look.outcome = "hit"
        elif places.is_fx_graph_miss(error):
            look.outcome, look.reason, look.exception_type = "miss", GRAPH_MISSING, type(error).__name__
        else:
            self._bypassed(look, error)

    def _bypassed(self, look: LookUp, error: BaseException) -> None:
        why, cause = " ".join(str(error).split()), error.__cause__
        if cause is not None and str(cause) != str(error):
            why = f"{why} ({shield.told(cause)})"
        look.outcome, look.reason, look.exception_type = "bypass", why or None, type(error).__name__

    def _tried(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        look = self._end(LookUp)
        if look is None:
            return
        if error is not None:
            if look.reason is None:
                self._bypassed(look, error)
            look.reason = f"{look.reason or type(error).__name__} ({STRICT})"
        taken = {f"{way}_saved_s": look.entry.pop(f"{way}_s", None) for way in ("forward", "backward")}
        if look.outcome == "hit":
            look.entry |= taken
            look.entry["saved_s"] = _total(taken.values())
        else:
            look.entry.pop("counted_again", None)
        self._tell_look_up(look)

    # Stores

    def _saves(self, args: Args, kwargs: Kwargs) -> None:
        self._begin(CacheStore(self.cache, time.time_ns()))

    def _unpickled(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        """Torch, which has just caught what pickling raised, looks for the field that can't be pickled."""
        store, raised = self._top(CacheStore), sys.exc_info()[1]
        if store is not None and raised is not None:
            field = f" (field {result})" if result else ""
            store.trouble = Trouble(type(raised).__name__, f"{NOT_PICKLED}: {shield.told(raised)}{field}")

    def _unsaved(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        """Torch has caught what a store raised."""
        store, raised = self._top(CacheStore), _compat.argument(args, kwargs, 0, "e")
        if store is None:
            return
        store.is_bypass = bool(_compat.argument(args, kwargs, 2, "is_bypass"))
        if store.trouble is None:
            why = " ".join(str(raised).split()) if store.is_bypass else f"{NOT_SAVED}: {shield.told(raised)}"
            store.trouble = Trouble(type(raised).__name__, why)

    def _saved(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        store = self._end(CacheStore)
        if store is None:
            return
        store.key = _compat.argument(args, kwargs, 0, "key")
        columns = places.entry_columns(_compat.argument(args, kwargs, 1, "entry"))
        taken = [columns.pop(f"{way}_s") for way in ("forward", "backward")]
        store.entry = {**columns, "taken_s": _total(taken)}
        if store.bytes is None and store.trouble is None:
            store.trouble = Trouble(None, f"{NOT_PICKLED}: torch logged why")
        if error is not None and store.bytes is None:
            store.trouble.text += f" ({STRICT})"
        self._tell_store(store)


def _total(seconds: Iterable[float | None]) -> float | None:
    known = [s for s in seconds if s is not None]
    return sum(known) if known else None
