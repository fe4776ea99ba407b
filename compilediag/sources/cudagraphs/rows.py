"""Rows of the table `cudagraphs`: what is known of a function that torch captures in a tree of CUDA graphs."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

from ...events import CudaGraphAction
from ...recording import Made
from ..dynamo.current_compile import Frames, code_of

#: Compile ids of what the backend `cudagraphs` compiled, which does not hand them on to the tree.
of_backend: weakref.WeakKeyDictionary[Any, str | None] = weakref.WeakKeyDictionary()
#: Inputs whose sizes are told, of those that are not static.
SIZES = 8


def known_function(manager: Any, function_id: Any, frames: Frames) -> dict[str, Any]:
    """The columns that all events of a function of a tree share."""
    compile_id = manager.id_to_compile_id.get(function_id)
    model = manager.ids_to_funcs[function_id].model
    by_backend = compile_id is None and model in of_backend
    compile_id = of_backend[model] if by_backend else None if compile_id is None else str(compile_id)
    return {
        "function_id": function_id.id,
        "compile_id": compile_id,
        "backend": "cudagraphs" if by_backend else "trees",
        "mode": manager.id_to_mode[function_id].name.lower(),
        "device": f"cuda:{manager.device_index}",
        **code_of(compile_id, frames),
    }


def input_names(manager: Any, function_id: Any) -> tuple[str, ...]:
    """The names of a function's inputs in the compiled graph, in order; of its last ones torch may not know any."""
    return tuple(placeholder.name for placeholder in manager.ids_to_funcs[function_id].placeholders)


def changing_sizes(manager: Any, function_id: Any, inputs: list[Any]) -> str | None:
    """`4x3, 8`: the sizes of the inputs that may be others at the next call; None if there are none."""
    static = set(manager.ids_to_funcs[function_id].static_input_idxs)
    sizes = [
        "x".join(map(str, i.shape)) or "scalar" for n, i in enumerate(inputs) if hasattr(i, "shape") and n not in static
    ]
    more = f" and {len(sizes) - SIZES} more" if len(sizes) > SIZES else ""
    return (", ".join(sizes[:SIZES]) + more) or None


def action(columns: Callable[..., dict[str, Any]] | None, args: tuple[Any, ...], known: dict[str, Any]) -> Made:
    """The row of an action: what was known when it happened, and what `columns(*args)` works out of texts."""
    worked_out = columns(*args) if columns is not None else {}
    yield CudaGraphAction(**{**known, **{k: v for k, v in worked_out.items() if v is not None}})
