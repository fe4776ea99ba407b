"""Advice about the marks of a tensor's dimensions: mark_dynamic, mark_static and the like, and the bounds they got."""

from __future__ import annotations

import re

from ...formatting import format_change, format_expression
from .advice import Advice, get_usual_ceiling
from .cause import Cause, list_unique

#: The attribute of a tensor in which torch keeps a mark.
MARKS = re.compile(r"\._dynamo_(\w+)$")
#: The attribute's name without `_dynamo_` -> torch's function that sets it.
_FUNCTIONS = {
    "dynamic_indices": "torch._dynamo.mark_dynamic",
    "weak_dynamic_indices": "torch._dynamo.maybe_mark_dynamic",
    "static_indices": "torch._dynamo.mark_static",
    "unbacked_indices": "torch._dynamo.decorators.mark_unbacked",
    "strict_unbacked_indices": "torch._dynamo.decorators.mark_unbacked",
    "shape_ids": "torch._dynamo.decorators.mark_unbacked",
    "unbacked_bounds": "torch._dynamo.decorators.mark_unbacked",
    "dynamic_range": "torch._dynamo.mark_dynamic",
}
_BOUNDS = ("dynamic_range", "unbacked_bounds")


def advise_marks(cause: Cause, mark: str) -> Advice:
    """A tensor whose dimensions are marked in another way. `mark` is the attribute's name without `_dynamo_`."""
    tensor = format_expression(cause.source.removesuffix(f"._dynamo_{mark}"))
    function = _FUNCTIONS.get(mark, "torch._dynamo.mark_dynamic")
    if mark in _BOUNDS:
        seen = list_unique(
            text for row in cause.seen or cause.recompiles for text in (row.expected, row.actual) if text
        )
        return Advice(
            "size_changes",
            f"Pass the same min= and max= to {function} at every call, with a range that includes all sizes.",
            f"The range of {tensor} is compiled in, so each range is a new compile.",
            ceiling=get_usual_ceiling(cause),
            what_changed=f"the range of {tensor} {format_change(seen)}",
        )
    return Advice(
        "size_changes",
        f"Call {function} in the same way for {tensor} at each call, beginning with the first one.",
        "A mark is compiled in: a tensor with another mark is a new compile. A tensor without a mark can use an entry "
        "that was compiled with one.",
        ceiling=get_usual_ceiling(cause),
        what_changed=f"{function} marked other dimensions of {tensor}, or none",
    )
