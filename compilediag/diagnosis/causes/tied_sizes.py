"""Sizes that an entry fixed only because they have to equal the size of another tensor, which changed with them."""

from __future__ import annotations

import re
from dataclasses import replace

from .cause import Cause

#: What a line has that reads a size itself: a loop, a range, a view.
_READS_SIZE = re.compile(r"\b(?:for|while|range|len|size|shape|view|reshape|numel|item|int)\b")


def drop_tied_needs(cause: Cause) -> Cause:
    """The cause without the line that fixed its size, if that line only calculates with several tensors.

    torch makes the sizes of two tensors dynamic one after the other. In between, the one that is dynamic has to equal
    the one that is not. If both are dynamic, none is fixed.
    """
    need = cause.facts.value_need
    is_tied = any(kind == "tensor_size" for kind, _ in cause.members.guards)
    if need is None or not is_tied or not need.code or _READS_SIZE.search(need.code):
        return cause
    return replace(cause, is_still_static=False, facts=replace(cause.facts, value_need=None, exclusions=()))
