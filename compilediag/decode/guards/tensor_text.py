"""The text of a guard on a tensor: `check_tensor(L['x'], Tensor, DispatchKeySet(CPU), ..., size=[2], stride=[1])`."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..bounded_text import cache_short
from .path import format_source, scan_source

_START = "check_tensor("
#: What follows the tensor's name.
_REST = re.compile(
    r", (?P<type>[\w.<>]+), DispatchKeySet\((?P<keys>[^)]*)\), (?P<dtype>torch\.\w+), "
    r"device=(?P<device>\w+), requires_grad=(?P<grad>\w+), size=\[(?P<size>[^\]]*)\], stride=\[(?P<stride>[^\]]*)\]\)"
)


@dataclass(frozen=True, slots=True)
class TensorCheck:
    """What a TENSOR_MATCH guard requires; None in a size or stride is a dynamic dimension.

    `is_on_current`: the tensor has to be on the current device, whatever its index (compile_on_one_rank of torch 2.15).
    """

    name: str
    pytype: str
    keys: str
    dtype: str
    device_index: int | None
    is_on_current: bool
    requires_grad: bool
    size: tuple[int | None, ...]
    stride: tuple[int | None, ...]

    @staticmethod
    @cache_short(4096)
    def parse(text: str) -> TensorCheck | None:
        """Parse a guard's text; None for any other text."""
        if not text.startswith(_START):
            return None
        end = scan_source(text, len(_START))
        found = _REST.match(text, end)
        if not found:
            return None
        index = found["device"]
        return TensorCheck(
            name=format_source(text[len(_START) : end]),
            pytype=found["type"],
            keys=found["keys"],
            dtype=found["dtype"],
            device_index=int(index) if index.isdecimal() else None,
            is_on_current=index == "current",
            requires_grad=found["grad"] == "True",
            size=_parse_numbers(found["size"]),
            stride=_parse_numbers(found["stride"]),
        )


def _parse_numbers(text: str) -> tuple[int | None, ...]:
    parts = [part.strip() for part in text.split(",") if part.strip()]
    return tuple(None if part == "None" else int(part) for part in parts)


def format_tensor_check(text: str) -> str | None:
    """Format such a text for a line, what differs most often first; None for any other text."""
    check = TensorCheck.parse(text)
    if check is None:
        return None
    rest = text[scan_source(text, len(_START)) :]
    size, settings = rest.rpartition(", size=")[2], rest.partition("), ")[2].partition(", size=")[0]
    return f"{check.name}: {check.pytype} size={size[:-1]}, {settings}, DispatchKeySet({check.keys})"
