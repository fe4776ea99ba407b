"""The instant event of automatic dynamic shapes as a `DynamicDecision`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...events import DynamicDecision

#: The name under which torch announces one.
EVENT = "automatic_dynamic"


def dynamic_decision(metadata: Mapping[str, Any], time_ns: int) -> DynamicDecision:
    """What torch made dynamic by itself, and why."""

    def text(name: str) -> str | None:
        value = metadata.get(name)
        return None if value is None else str(value)

    return DynamicDecision(
        time_ns=time_ns,
        compile_id=text("compile_id"),
        source=text("name"),
        dim=text("dim_changed"),
        reason=text("reason"),
        cached=text("cached"),
        new=text("new"),
    )
