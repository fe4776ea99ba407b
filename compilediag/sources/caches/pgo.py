"""Profile-guided optimization: which sizes an earlier run of this job found to vary, read and written on disk.

It needs a job id (`TORCH_COMPILE_JOB_ID`). Its remote tier is one of the remote caches.
"""

from __future__ import annotations

import time
from typing import Any

from ...events import CacheLookup
from .. import _compat
from .._compat import dynamo_caches as places
from ..dynamo.current_compile import whose
from ..hooks import shield
from ..hooks.patching import Args, Kwargs, Patch, Raised
from ..hooks.source import Source, made

OFF = {"outcome": "disabled", "reason": "automatic_dynamic_local_pgo is off"}


class Pgo(Source):
    name = "pgo"

    @classmethod
    def probe(cls) -> None:
        places.pgo_module()

    def patches(self) -> list[Patch]:
        module = places.pgo_module()
        return [
            Patch(module, "get_local_code_state", self._read, self.guarded),
            Patch(module, "write_local_impl", self._written, self.guarded),
        ]

    def _read(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        """torch asks once a process, or once after `reset`; a file that it can't read counts as none."""
        key = _compat.argument(args, kwargs, 0, "cache_key")
        size = places.profile_bytes(key)
        if size == -1:
            found = OFF
        elif size is None:
            found = {"outcome": "miss"}
        elif result is None:
            found = {"outcome": "failed", "reason": "its file can't be read as a profile", "bytes": size}
        else:
            found = {"outcome": "hit", "bytes": size}
        self._tell("look_up", key, error, found)

    def _written(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        written = {"outcome": "saved", "bytes": result[1]} if result is not None else OFF
        self._tell("store", _compat.argument(args, kwargs, 0, "cache_key"), error, written)

    def _tell(self, action: str, key: str, error: Raised, columns: dict[str, Any]) -> None:
        if error is not None:
            columns = {"outcome": "failed", **shield.columns(error)}
        row = {"cache": "pgo", "tier": "local", "action": action, "key": key, **whose(self.recorder), **columns}
        self.emit(made, CacheLookup(time_ns=time.time_ns(), **row))
