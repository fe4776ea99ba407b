"""TORCH_TRACE logs as sessions: which files, how they are unpacked, and how their events are written."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .job import UnreadRecords, ingest, opened, read_logs, read_on_dask

__all__ = ["UnreadRecords", "ingest", "opened", "read_logs", "read_on_dask"]


def __getattr__(name: str) -> Any:
    """These load when they are first used: the processes that read logs need none of them, and start sooner."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(".job", __name__), name)
