"""Automatic dynamic shapes: which input or attribute torch made dynamic by itself, and why."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ... import clock
from ...decode.records.timed_events import AUTOMATIC_DYNAMIC, make_dynamic_decision
from ..hooks.patches import Args, Kwargs, Patch, Raised
from ..hooks.sink import Made
from ..hooks.source import Source
from . import torch_api


class DynamicDecisions(Source):
    name = "dynamic"
    needs = (torch_api.INSTANT_EVENT, torch_api.COMPILE_CONTEXT)

    def patches(self) -> list[Patch]:
        return [self.watch(torch_api.INSTANT_EVENT, self._on_announced)]

    def _on_announced(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        _, name, time_ns, metadata, *_ = (*args, None)
        if name == AUTOMATIC_DYNAMIC and metadata:
            _, key = self.context.keys.current()
            self.emit(_make_row, dict(metadata), clock.convert(time_ns), key)


def _make_row(metadata: Mapping[str, object], time_ns: int, key: str | None) -> Made:
    return (make_dynamic_decision(metadata, time_ns, key),)
