"""The triton bundle: compiled kernels that an entry of FxGraphCache brings along, as files and as ready launchers."""

from __future__ import annotations

import time
from typing import Any

from ...events import CacheLookup
from .. import _compat
from .._compat import triton_bundle as places
from ..dynamo.current_compile import whose
from ..hooks import shield
from ..hooks.patching import Args, Kwargs, Patch, Raised
from ..hooks.source import Source, made


class TritonBundle(Source):
    name = "triton_bundle"

    @classmethod
    def probe(cls) -> None:
        places.bundler()
        _compat.require_triton()

    def patches(self) -> list[Patch]:
        owner = places.bundler()
        return [
            Patch(owner, "collect", self._collected, self.guarded),
            Patch(owner, "read_and_emit", self._read, self.guarded),
            Patch(owner, "load_autotuners", self._loaded, self.guarded),
        ]

    def _collected(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        """A bundle of files (local), and of launchers that need no triton (memory)."""
        if error is not None:
            self._tell("store", "local", "failed", error)
            return
        bundle, _ = result
        if bundle.kernel_artifacts:
            self._tell("store", "local", "saved", **places.kernel_columns(bundle.kernel_artifacts))
        if bundle.static_autotuners:
            self._tell("store", "memory", "saved", kernels=len(bundle.static_autotuners))

    def _read(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        bundle = _compat.argument(args, kwargs, 0, "bundle")
        if error is not None:
            self._tell("look_up", "local", "failed", error)
        elif result is not None and bundle.kernel_artifacts:
            written = places.put_in_place(bundle, result)
            if written:
                self._tell("write", "local", "written", **places.kernel_columns(written))
            if len(written) < len(bundle.kernel_artifacts):
                there = len(bundle.kernel_artifacts) - len(written)
                self._tell("look_up", "local", "hit", kernels=there, reason="the files were there")

    def _loaded(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        wanted = _compat.argument(args, kwargs, 1, "static_autotuners") or ()
        if error is not None:
            self._tell("look_up", "memory", "failed", error)
            return
        if result:
            self._tell("look_up", "memory", "hit", kernels=len(result))
        if len(result) < len(wanted):
            self._tell(
                "look_up",
                "memory",
                "failed",
                kernels=len(wanted) - len(result),
                reason="the machine code is not in place",
            )

    def _tell(self, action: str, tier: str, outcome: str, error: Raised = None, **columns: Any) -> None:
        row = {"cache": "triton_bundle", "tier": tier, "action": action, "outcome": outcome}
        told = {**whose(self.recorder), **shield.columns(error), **columns}
        self.emit(made, CacheLookup(time_ns=time.time_ns(), **row, **told))
