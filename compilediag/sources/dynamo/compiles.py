"""Compiles: torch's own metrics of every compile, forward, backward and compiled autograd, as they are recorded."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...decode.records.compilation_metrics import make_compile
from ...recording import Made
from ..hooks.patches import Args, Kwargs, Patch, Raised
from ..hooks.source import Source
from ..hooks.torch_names import call_argument
from . import torch_api
from .current_compile import compile_keys


class Compiles(Source):
    name = "compiles"
    needs = (torch_api.METRICS_RECORDED, torch_api.COMPILE_CONTEXT)

    def patches(self) -> list[Patch]:
        return [self.watch(torch_api.METRICS_RECORDED, self._on_recorded)]

    def _on_recorded(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        metrics = call_argument(args, kwargs, 0, "c")
        key = compile_keys(self.recorder).match(metrics.compile_id)
        # Not a copy: the writer's thread adds the call stack to it.
        self.emit(_make_rows, metrics, self.recorder.frames.get(key or "", {}), key)


def _make_rows(metrics: Any, known: Mapping[str, Any], key: str | None) -> Made:
    event = make_compile(vars(metrics), known, key)
    return [] if event is None else [event]
