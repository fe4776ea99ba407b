"""Automatic dynamic shapes: which input or attribute torch made dynamic by itself, and why."""

from __future__ import annotations

from typing import Any

from ...decode.records.timed_events import AUTOMATIC_DYNAMIC, make_dynamic_decision
from ...recording import Made
from .. import _compat
from ..hooks.patching import Args, Kwargs, Patch, Raised
from ..hooks.source import Source, made


class Dynamic(Source):
    name = "dynamic"

    @classmethod
    def probe(cls) -> None:
        _compat.event_logger()

    def patches(self) -> list[Patch]:
        return [Patch(_compat.event_logger(), "log_instant_event", self._announced, self.guarded)]

    def _announced(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        _, name, time_ns, metadata, *_ = (*args, None)
        if name == AUTOMATIC_DYNAMIC and metadata:
            self.emit(_decision, dict(metadata), time_ns)


def _decision(metadata: dict[str, Any], time_ns: int) -> Made:
    return made(make_dynamic_decision(metadata, time_ns))
