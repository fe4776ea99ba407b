"""Bounds of what is kept: of a long text its beginning, its length and a digest; no result that was made of it."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

#: Characters of a text that one cell of a table can hold.
MAX_TEXT = 4_000
#: The same for the JSON of a list or a dict, and for one text in it once the JSON is longer.
MAX_JSON, MAX_ITEM = 64_000, 1_000
#: Characters of a message of torch's that are searched: some patterns try each of them as a beginning.
SEARCHED = 20_000


def bound_text(text: str, limit: int = MAX_TEXT) -> str:
    """Return the text if it has at most `limit` characters, else its beginning with its length and its digest.

    The result never has more than `limit` characters (at least 60), and equal texts have equal results.
    """
    if len(text) <= limit:
        return text
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    note = f"... ({len(text):,} characters, sha256 {digest})"
    return text[: limit - len(note)] + note


def bound_lines(text: str) -> str:
    """Return the text with lines of at most `MAX_TEXT` characters."""
    lines = text.split("\n")
    return text if max(map(len, lines)) <= MAX_TEXT else "\n".join(map(bound_text, lines))


def bound_items(value: Any) -> Any:
    """Return a list or dict as JSON can hold it in about `MAX_JSON` characters: its first items, with shorter texts.

    A list of numbers is kept whole.
    """
    left = MAX_JSON

    def take(value: Any) -> Any:
        nonlocal left
        if isinstance(value, dict):
            return {take(key): take(item) for key, item in value.items() if left > 0}
        if isinstance(value, (list, tuple)):
            if all(item is None or isinstance(item, (int, float)) for item in value):
                return list(value)
            taken: list[Any] = []
            for number, item in enumerate(value):
                if left <= 0:
                    if isinstance(item, str):
                        taken.append(f"... ({len(value) - number:,} more)")
                    break
                taken.append(take(item))
            return taken
        if isinstance(value, str):
            value = bound_text(value, MAX_ITEM)
        left -= len(value) if isinstance(value, str) else 8
        return value

    return take(value)


def cache_short(maxsize: int, longest: int = 2 * MAX_TEXT) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Cache the results of a function of texts, as `functools.lru_cache` does; calls with a long text are not kept."""

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        cached: Any = functools.lru_cache(maxsize=maxsize)(function)

        @functools.wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            is_short = len(args[0]) <= longest  # type: ignore[arg-type]
            result: R = cached(*args, **kwargs) if is_short else function(*args, **kwargs)
            return result

        return call

    return decorate
