"""Profile-guided optimization: which sizes an earlier run of this job found to vary, read and written on disk.

It needs a job id (`TORCH_COMPILE_JOB_ID`). Its remote tier is one of the remote caches.
"""

from __future__ import annotations

from typing import Any

from ... import clock
from ...events import CacheLookup
from ..hooks.own_errors import error_columns
from ..hooks.patches import Args, Kwargs, Patch, Raised
from ..hooks.source import Source
from ..hooks.torch_names import call_argument
from . import torch_api

OFF = {"outcome": "disabled", "reason": "automatic_dynamic_local_pgo is off"}


class Profiles(Source):
    name = "pgo"
    needs = (torch_api.PROFILE_PATH, torch_api.PROFILE_READ, torch_api.PROFILE_WRITTEN)

    def patches(self) -> list[Patch]:
        return [
            self.watch(torch_api.PROFILE_READ, self._read),
            self.watch(torch_api.PROFILE_WRITTEN, self._on_written),
        ]

    def _read(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        """torch asks once per process, or once after `reset`; it treats a file that it cannot read as missing."""
        key = call_argument(args, kwargs, 0, "cache_key")
        size = torch_api.profile_bytes(key)
        columns: dict[str, Any]
        if size == -1:
            columns = OFF
        elif size is None:
            columns = {"outcome": "miss"}
        elif result is None:
            columns = {"outcome": "failed", "reason": "its file cannot be read as a profile", "bytes": size}
        else:
            columns = {"outcome": "hit", "bytes": size}
        self._emit_row("look_up", key, error, columns)

    def _on_written(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        columns = {"outcome": "saved", "bytes": result[1]} if result is not None else OFF
        self._emit_row("store", call_argument(args, kwargs, 0, "cache_key"), error, columns)

    def _emit_row(self, action: str, key: str, error: Raised, columns: dict[str, Any]) -> None:
        if error is not None:
            columns = {"outcome": "failed", **error_columns(error)}
        row = {"cache": "pgo", "tier": "local", "action": action, "key": key, **columns}
        self.emit_event(CacheLookup(time_ns=clock.now_ns(), **row, **self.context.current_columns()))
