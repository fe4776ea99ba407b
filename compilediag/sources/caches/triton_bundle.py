"""The triton bundle: compiled kernels that are stored with an FxGraphCache entry, as files and as launchers."""

from __future__ import annotations

from typing import Any, Unpack

from ... import clock
from ...events import CacheLookup
from ..hooks.columns import ErrorColumns
from ..hooks.own_errors import error_columns
from ..hooks.patches import Args, Kwargs, Patch, Raised
from ..hooks.source import Source
from ..hooks.torch_names import call_argument, require_triton
from . import torch_api


class TritonBundle(Source):
    name = "triton_bundle"
    needs = (torch_api.BUNDLE_COLLECTED, torch_api.BUNDLE_READ, torch_api.LAUNCHERS_LOADED)

    @classmethod
    def probe(cls) -> None:
        super().probe()
        require_triton()

    def patches(self) -> list[Patch]:
        return [
            self.watch(torch_api.BUNDLE_COLLECTED, self._on_collected),
            self.watch(torch_api.BUNDLE_READ, self._read),
            self.watch(torch_api.LAUNCHERS_LOADED, self._on_loaded),
        ]

    def _on_collected(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        """A bundle of files (local), and of launchers that need no triton (memory)."""
        if error is not None:
            self._emit_row("store", "local", "failed", error)
            return
        bundle, _ = result
        if bundle.kernel_artifacts:
            self._emit_row("store", "local", "saved", **torch_api.bundle_columns(bundle.kernel_artifacts))
        if bundle.static_autotuners:
            self._emit_row("store", "memory", "saved", kernels=len(bundle.static_autotuners))

    def _read(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        bundle = call_argument(args, kwargs, 0, "bundle")
        if error is not None:
            self._emit_row("look_up", "local", "failed", error)
        elif result is not None and bundle.kernel_artifacts:
            written = torch_api.written_kernels(bundle, result)
            if written:
                self._emit_row("write", "local", "written", **torch_api.bundle_columns(written))
            if len(written) < len(bundle.kernel_artifacts):
                there = len(bundle.kernel_artifacts) - len(written)
                self._emit_row("look_up", "local", "hit", kernels=there, reason="the files already exist")

    def _on_loaded(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        wanted = call_argument(args, kwargs, 1, "static_autotuners") or ()
        if error is not None:
            self._emit_row("look_up", "memory", "failed", error)
            return
        if result:
            self._emit_row("look_up", "memory", "hit", kernels=len(result))
        if len(result) < len(wanted):
            self._emit_row(
                "look_up",
                "memory",
                "failed",
                kernels=len(wanted) - len(result),
                reason="the machine code is missing",
            )

    def _emit_row(
        self,
        action: str,
        tier: str,
        outcome: str,
        error: Raised = None,
        reason: str | None = None,
        **bundle: Unpack[torch_api.BundleColumns],
    ) -> None:
        why: ErrorColumns = {"reason": reason, **error_columns(error)}
        self.emit_event(
            CacheLookup(
                time_ns=clock.now_ns(),
                cache="triton_bundle",
                tier=tier,
                action=action,
                outcome=outcome,
                **self.context.current_columns(),
                **why,
                **bundle,
            )
        )
