"""Automatic dynamic shapes: which input or attribute torch made dynamic by itself, and why."""

from __future__ import annotations

from typing import Any

from ..decode.dynamic import EVENT, dynamic_decision
from ..recorder import Made
from . import _compat
from .base import Source, made
from .patching import Args, Kwargs, Patch, Raised


class Dynamic(Source):
    name = "dynamic"

    @classmethod
    def probe(cls) -> None:
        _compat.event_logger()

    def patches(self) -> list[Patch]:
        return [Patch(_compat.event_logger(), "log_instant_event", self._announced, self.guarded)]

    def _announced(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        _, name, time_ns, metadata, *_ = (*args, None)
        if name == EVENT and metadata:
            self.emit(_decision, dict(metadata), time_ns)


def _decision(metadata: dict[str, Any], time_ns: int) -> Made:
    return made(dynamic_decision(metadata, time_ns))
