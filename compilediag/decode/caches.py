"""Instant events of the compile-time caches as `CacheLookup`s."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ..events import CacheLookup

#: Name of the instant event -> (cache, outcome), and the name that AOTAutograd's own artifact uses.
EVENT = re.compile(r"(?P<cache>fx_graph|(?:aot)?autograd)_cache_(?P<outcome>hit|miss|bypass|disabled)$")


def cache_lookup(name: str, metadata: Mapping[str, Any], time_ns: int) -> CacheLookup | None:
    """The look-up that the instant event `name` tells of; None if it is of something else."""
    found = EVENT.match(name)
    if found is None:
        return None
    guard_miss = metadata.get("cache_status_detailed") == "guard_miss"
    return CacheLookup(
        time_ns=time_ns,
        compile_id=_text(metadata.get("compile_id")),
        cache="fx_graph" if found["cache"] == "fx_graph" else "aot_autograd",
        tier="local",
        outcome="guard_miss" if found["outcome"] == "miss" and guard_miss else found["outcome"],
        key=_text(metadata.get("key")),
        reason=_text(metadata.get("cache_bypass_reason")),
        taken_s=_seconds(metadata, "time_taken_ns", 1e9),
        saved_s=_seconds(metadata, "time_saved_ns", 1e9) or _seconds(metadata, "time_saved_ms", 1e3),
    )


def _text(value: Any) -> str | None:
    return None if value in (None, "None") else str(value)


def _seconds(metadata: Mapping[str, Any], name: str, unit: float) -> float | None:
    value = metadata.get(name)
    return None if value is None else value / unit
