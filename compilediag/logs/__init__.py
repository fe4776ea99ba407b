"""TORCH_TRACE logs and folders as session files: find them, unpack them, decode them, write their events."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .folders import find_sessions, has_sessions, open_folder
    from .followed_files import FollowedFile, FollowedFiles
    from .ingestion import Paths, UnreadRecords, read_logs, read_logs_with_dask

#: Name -> the module that defines it, imported on first use: the processes that read logs start sooner without them.
_HOME = {
    "FollowedFile": "followed_files",
    "FollowedFiles": "followed_files",
    "Paths": "ingestion",
    "UnreadRecords": "ingestion",
    "find_sessions": "folders",
    "has_sessions": "folders",
    "open_folder": "folders",
    "read_logs": "ingestion",
    "read_logs_with_dask": "ingestion",
}

__all__ = [
    "FollowedFile",
    "FollowedFiles",
    "Paths",
    "UnreadRecords",
    "find_sessions",
    "has_sessions",
    "open_folder",
    "read_logs",
    "read_logs_with_dask",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f".{_HOME[name]}", __name__), name)
