"""Paths to values: a name, and the attributes, items and calls after it, as in `kwargs['ids'].size()[0]`."""

from __future__ import annotations

import ast
import re
from typing import NamedTuple

_NAME = re.compile(r"[^\W\d]\w*")
_ATTRIBUTE = re.compile(r"\.(?:[^\W\d]\w*|\d+|\*)")
_CLOSING = {"[": "]", "(": ")", "{": "}"}
#: The last parts of a path that are a tensor's property and not a value of its own.
_PROPERTIES = re.compile(r"\.(?:(?:size|stride)\(\)\[\d+\]|dim\(\)|(?:dtype|device|requires_grad|layout)(?:\(\))?)$")
_SIZE = re.compile(r"\.(size|stride)\(\)\[(\d+)\]")


class ValuePath(NamedTuple):
    """A name and what follows it: `self.blocks[0]` is ("self", (".blocks", "[0]"))."""

    root: str
    rest: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        return self.root + "".join(self.rest)

    def add(self, rest: tuple[str, ...]) -> ValuePath:
        """The path with more parts at its end."""
        return ValuePath(self.root, self.rest + rest)


def parse_path(text: str) -> ValuePath | None:
    """Parse a path; None if the text is something else, such as a sum. `[*]` and `.*` are parts as well."""
    text = text.strip()
    root = _NAME.match(text)
    if root is None:
        return None
    parts, at = [], root.end()
    while at < len(text):
        end = _find_end(text, at)
        if end is None:
            return None
        parts.append(text[at:end])
        at = end
    return ValuePath(root.group(), tuple(parts))


def _find_end(text: str, at: int) -> int | None:
    """The end of the attribute, item or call that begins at `at`."""
    if text[at] == ".":
        found = _ATTRIBUTE.match(text, at)
        return found.end() if found else None
    if text[at] not in "[(":
        return None
    waiting, quote = [], ""
    for place in range(at, len(text)):
        character = text[place]
        if quote:
            if character == quote and text[place - 1] != "\\":
                quote = ""
        elif character in "'\"":
            quote = character
        elif character in _CLOSING:
            waiting.append(_CLOSING[character])
        elif character in ")]}":
            if not waiting or waiting.pop() != character:
                return None
            if not waiting:
                return place + 1
    return None


def get_key(part: str) -> str | int | None:
    """The key of an item that is a text or a whole number: `[0]` is 0, `['ids']` is "ids"; None for anything else."""
    if not part.startswith("["):
        return None
    try:
        key = ast.literal_eval(part[1:-1])
    except (SyntaxError, ValueError, TypeError, MemoryError, RecursionError):
        return None
    return key if isinstance(key, (str, int)) and not isinstance(key, bool) else None


def split_tensor_property(text: str) -> tuple[str, str]:
    """Split a tensor's property off: `ids.size()[0]` -> ("ids", ".size()[0]"); ("self.n", "") without one."""
    found = _PROPERTIES.search(text)
    return (text, "") if found is None else (text[: found.start()], found.group())


def format_sizes(text: str) -> str:
    """Write sizes as Python code does: `.size()[0]` is `.shape[0]`."""
    return _SIZE.sub(lambda found: f".shape[{found[2]}]" if found[1] == "size" else f".stride({found[2]})", text)
