"""Compiles: torch's own metrics of every compile, forward, backward and compiled autograd, as they are recorded."""

from __future__ import annotations

from typing import Any

from ...decode.records.compilation_metrics import make_compile
from ...recording import Made
from .. import _compat
from ..hooks.patching import Args, Kwargs, Patch, Raised
from ..hooks.source import Source


class Compiles(Source):
    name = "compiles"

    @classmethod
    def probe(cls) -> None:
        _compat.metrics_module()

    def patches(self) -> list[Patch]:
        hook = "add_compilation_metrics_to_chromium"
        return [Patch(_compat.metrics_module(), hook, self._recorded, self.guarded)]

    def _recorded(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        metrics = args[0] if args else kwargs["c"]
        # Not a copy: the writer's thread notes its call stack in it.
        self.emit(_compile, metrics, self.recorder.frames.get(metrics.compile_id, {}))


def _compile(metrics: Any, known: dict[str, Any]) -> Made:
    event = make_compile(vars(metrics), known)
    return [] if event is None else [event]
