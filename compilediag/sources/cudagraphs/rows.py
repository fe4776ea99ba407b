"""Rows of the table `cudagraphs`: what is known about a function that torch captures in a tree of CUDA graphs."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

from ...events import CudaGraphAction
from ..compile_context import CompileContext
from ..hooks.sink import Made

#: CompileId objects of the functions of the backend `cudagraphs`, which does not pass them on to the tree.
backend_ids: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()
#: Inputs whose sizes are listed, of those that are not static.
MAX_SIZES = 8


def describe_function(manager: Any, function_id: Any, context: CompileContext) -> dict[str, Any]:
    """The columns that all events of a function of a tree share."""
    compile_id = manager.id_to_compile_id.get(function_id)
    model = manager.ids_to_funcs[function_id].model
    by_backend = compile_id is None and model in backend_ids
    compile_id = backend_ids[model] if by_backend else compile_id
    key = context.keys.guess(compile_id)
    return {
        "function_id": function_id.id,
        "compile_id": None if compile_id is None else str(compile_id),
        "compile_key": key,
        "backend": "cudagraphs" if by_backend else "trees",
        "mode": manager.id_to_mode[function_id].name.lower(),
        "device": f"cuda:{manager.device_index}",
        **context.function_columns(key),
    }


def input_names(manager: Any, function_id: Any) -> tuple[str, ...]:
    """The names of a function's inputs in the compiled graph, in order; torch may not know the last ones."""
    return tuple(placeholder.name for placeholder in manager.ids_to_funcs[function_id].placeholders)


def changing_sizes(manager: Any, function_id: Any, inputs: list[Any]) -> str | None:
    """`4x3, 8`: the sizes of the inputs that may differ at the next call; None if there are none."""
    static = set(manager.ids_to_funcs[function_id].static_input_idxs)
    sizes = [
        "x".join(map(str, i.shape)) or "scalar" for n, i in enumerate(inputs) if hasattr(i, "shape") and n not in static
    ]
    more = f" and {len(sizes) - MAX_SIZES} more" if len(sizes) > MAX_SIZES else ""
    return (", ".join(sizes[:MAX_SIZES]) + more) or None


def make_action(columns: Callable[..., dict[str, Any]] | None, args: tuple[Any, ...], known: dict[str, Any]) -> Made:
    """The row of an action: the columns known when it happened, and those that `columns(*args)` parses from texts."""
    parsed = columns(*args) if columns is not None else {}
    yield CudaGraphAction(**{**known, **{k: v for k, v in parsed.items() if v is not None}})
