"""JSON that can stand in a page or travel over a kernel's channel, whatever text is in it."""

from __future__ import annotations

import json
import math
from typing import Any

#: Inside a script element these could end it or begin a comment; JSON reads the escapes back.
ESCAPES = {"&": "\\u0026", "<": "\\u003c", ">": "\\u003e"}


def dumps(obj: Any) -> str:
    """`obj` as ASCII JSON without `&`, `<` and `>`. NaN and infinities become null; lone surrogates survive."""
    try:
        text = json.dumps(obj, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    except ValueError:
        text = json.dumps(_finite(obj), ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    for char, escape in ESCAPES.items():
        text = text.replace(char, escape)
    return text


def _finite(obj: Any) -> Any:
    if isinstance(obj, float):
        return obj if math.isfinite(obj) else None
    if isinstance(obj, dict):
        return {key: _finite(value) for key, value in obj.items()}
    if isinstance(obj, list | tuple):
        return [_finite(value) for value in obj]
    return obj
