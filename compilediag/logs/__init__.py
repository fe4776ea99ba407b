"""TORCH_TRACE logs and folders as session files: find them, unpack them, decode them, write their events."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .folders import has_sessions, read_folder
    from .ingestion import Paths, UnreadRecords, read_logs, read_logs_with_dask

#: Name -> the module that defines it, imported on first use: the processes that read logs start sooner without them.
_HOME = {
    "Paths": "ingestion",
    "UnreadRecords": "ingestion",
    "has_sessions": "folders",
    "read_folder": "folders",
    "read_logs": "ingestion",
    "read_logs_with_dask": "ingestion",
}

__all__ = ["Paths", "UnreadRecords", "has_sessions", "read_folder", "read_logs", "read_logs_with_dask"]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f".{_HOME[name]}", __name__), name)
