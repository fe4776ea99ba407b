"""Caches: look-ups of FxGraphCache and AOTAutogradCache as torch announces them, and what is saved."""

from __future__ import annotations

import time
from typing import Any

from ..decode.caches import EVENT, cache_lookup
from ..events import CacheLookup
from ..recorder import Made
from . import _compat
from .base import Source, made
from .keys import history_of
from .patching import Args, Kwargs, Patch, Raised


class Caches(Source):
    name = "caches"

    def __init__(self, *args: Any):
        super().__init__(*args)
        self._history = history_of(self.recorder)

    @classmethod
    def probe(cls) -> None:
        _compat.event_logger()
        _compat.fx_graph_cache()
        _compat.aot_autograd_cache()

    def patches(self) -> list[Patch]:
        return [
            Patch(_compat.event_logger(), "log_instant_event", self._announced, self.guarded),
            Patch(_compat.fx_graph_cache(), "_save_graph", self._fx_saved, self.guarded),
            Patch(_compat.aot_autograd_cache(), "save", self._aot_saved, self.guarded),
        ]

    def _announced(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        _, name, time_ns, metadata, *_ = (*args, None)
        if metadata and EVENT.match(name):
            frame = self.recorder.frames.get(metadata.get("compile_id"), {})
            self.emit(self._lookup, name, dict(metadata), time_ns, frame)

    def _lookup(self, name: str, metadata: dict[str, Any], time_ns: int, frame: dict[str, Any]) -> Made:
        lookup = cache_lookup(name, metadata, time_ns)
        if lookup is None:
            return []
        lookup.function, lookup.file, lookup.line = (frame.get(column) for column in ("function", "file", "line"))
        if self.detail == "full":
            self._history.compare(lookup, metadata.get("components") or ())
        return [lookup]

    def _fx_saved(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        key, graph, local, remote = (
            _compat.argument(args, kwargs, *at)
            for at in ((0, "key"), (1, "compiled_graph"), (3, "local"), (4, "remote_cache"))
        )
        taken_ns = getattr(graph, "_time_taken_ns", None)
        for tier in [*["local"] * bool(local), *["remote"] * (remote is not None)]:
            self._saved("fx_graph", tier, key, None if taken_ns is None else taken_ns / 1e9, error)

    def _aot_saved(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        key, entry, remote = (_compat.argument(args, kwargs, *at) for at in enumerate(("key", "entry", "remote")))
        taken = [getattr(entry, f"{way}_time_taken_ns", None) for way in ("forward", "backward")]
        taken_s = None if None in taken else sum(taken) / 1e9
        for tier in ["local", *["remote"] * bool(remote)]:
            self._saved("aot_autograd", tier, key, taken_s, error)

    def _saved(self, cache: str, tier: str, key: str, taken_s: float | None, error: BaseException | None) -> None:
        event = CacheLookup(
            time_ns=time.time_ns(),
            compile_id=_compat.current_compile_id(),
            cache=cache,
            tier=tier,
            outcome="saved" if error is None else "failed",
            key=key,
            reason=None if error is None else f"{type(error).__name__}: {error}",
            taken_s=taken_s,
        )
        self.emit(made, event)
