"""JSON that is safe inside a script element and in a kernel message, whatever text it holds."""

from __future__ import annotations

import json
import math
from typing import Any

#: These could end a script element or begin a comment in it. JSON reads the escapes back.
ESCAPES = {"&": "\\u0026", "<": "\\u003c", ">": "\\u003e"}


def dumps(obj: Any) -> str:
    """Return `obj` as ASCII JSON without `&`, `<` and `>`. NaN and infinities become null; lone surrogates survive."""
    try:
        text = json.dumps(obj, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    except ValueError:
        text = json.dumps(_replace_non_finite(obj), ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    for char, escape in ESCAPES.items():
        text = text.replace(char, escape)
    return text


def _replace_non_finite(obj: Any) -> Any:
    if isinstance(obj, float):
        return obj if math.isfinite(obj) else None
    if isinstance(obj, dict):
        return {key: _replace_non_finite(value) for key, value in obj.items()}
    if isinstance(obj, list | tuple):
        return [_replace_non_finite(value) for value in obj]
    return obj
