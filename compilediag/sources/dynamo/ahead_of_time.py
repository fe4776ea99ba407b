"""Compiles of `aot_compile`: torch reports their times without the function, after the compile's context is gone."""

from __future__ import annotations

import types
from typing import Any

from ...decode.records.compilation_metrics import AOT_COMPILE
from ..hooks.caller_frames import caller_frames
from . import torch_api

#: Frames between the hook on the metrics and the function that compiles.
DEPTH = 12


def find_compiled_ahead(depth: int = DEPTH) -> tuple[types.CodeType, dict[str, Any]] | None:
    """The function that `aot_compile` compiles in this thread, and the columns of its compile; None if none does."""
    for frame in caller_frames(depth):
        if torch_api.is_aot_compile(frame):
            local = frame.f_locals
            code = torch_api.traced_code(local.get("model"))
            if code is None:
                return None
            backend = torch_api.backend_name(local.get("backend"))
            graph = getattr(getattr(local.get("backend_input"), "graph_module", None), "graph", None)
            operations = None if graph is None else sum(map(torch_api.is_call, graph.nodes))
            known = {**torch_api.code_columns(code), "backend": backend, "trigger": AOT_COMPILE, "attempt": 0}
            return code, {**known, "graph_ops": operations, "stack": None}
    return None
