"""torch's text of a guard tree, line by line: what is checked, by which class of guard, because of which line.

The text is what `GuardManagerWrapper.__str__` prints (torch/_dynamo/guards.py, read at torch 2.11, 2.13 and 2.15): a
line per manager or leaf guard, indented by `| ` and marked by `+- `. Managers are the nodes (`source=L['x'],
accessed_by=..., type=<class ...>`), leaf guards are checks. A line with the time that all guards take can
follow.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from .guard_forms import parse_class_name
from .guard_text import format_tensor_check, parse_user_line, split_comment
from .path import format_source, scan_source

_LINE = re.compile(r"((?:\| )*)\+- ")
_MANAGER = re.compile(r"((?:KeyManager: |ValueManager: )?\w*GuardManager)(?:: source=(.*))?", re.S)
_MANAGER_REST = re.compile(r"(?:, accessed_by=[^\n]*)?, type=(<[^\n]*>), tag_safe=\([^\n]*\)$")
_LEAF = re.compile(r"([A-Z][A-Z_0-9]+)(?:: (.*))?", re.S)
_SAME = re.compile(r"___check_(obj|type)_id\(")
_SAME_REST = re.compile(r", (?P<id>\d+)\)(?:, type=(?P<type>.*))?$", re.S)
_ADDRESS = re.compile(r"\b0x[0-9a-f]{6,}\b")
#: torch numbers the name of this dict by compile; it is the same dict in all of them.
_BUILTINS = re.compile(r"__builtins_dict___\d+")
#: Most characters of a line; the artifact has the whole line.
_MAX_LINE = 600


class TreeLine(NamedTuple):
    """One line. `what`: class of the guard or manager; `description`: its check; `place`, `code`: the user's line."""

    depth: int
    what: str
    description: str
    place: str | None
    code: str | None


class ObjectNames:
    """Names that replace addresses: `code` for the first code object that a source has been, `code #2` for the next."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str, str], str] = {}
        self._counts: dict[tuple[str, str], int] = {}

    def name(self, source: str, kind: str, address: str) -> str:
        """Return the name of the object of this kind at this address, the same one each time."""
        key = (source, kind, address)
        if key not in self._known:
            count = self._counts[source, kind] = self._counts.get((source, kind), 0) + 1
            self._known[key] = kind if count == 1 else f"{kind} #{count}"
        return self._known[key]

    def replace_addresses(self, text: str) -> str:
        """Return `text` with a name for each hexadecimal address in it."""
        return _ADDRESS.sub(lambda found: f"[{self.name('', 'object', found[0])}]", text)


def split_tree(text: str) -> Iterator[str]:
    """Yield the lines of a tree with their indentation; a guard whose text has several lines stays together."""
    held: str | None = None
    for line in _BUILTINS.sub("__builtins_dict___0", text).splitlines():
        if _LINE.match(line):
            if held is not None:
                yield held
            held = line
        elif held is not None and line and not line.startswith("Guard latency"):
            held = f"{held}\n{line}"
    if held is not None:
        yield held


def parse_tree_line(line: str, names: ObjectNames) -> TreeLine:
    """Parse one line of `split_tree`; a line of unknown form is its own description. `names` gives names to objects."""
    indent = _LINE.match(line)
    body = line[indent.end() :] if indent else line
    depth = len(indent[1]) // 2 if indent else 0
    if manager := _MANAGER.fullmatch(body):
        return TreeLine(depth, manager[1], _shorten(_describe_manager(manager[2], names)), None, None)
    leaf = _LEAF.fullmatch(body)
    if leaf is None:
        return TreeLine(depth, "", _shorten(names.replace_addresses(body)), None, None)
    return _parse_leaf(depth, leaf[1], leaf[2] or "", names)


def describe_guard(text: str, names: ObjectNames) -> str:
    """Describe what a leaf guard checks, from its text: without the line that caused it, with names for objects."""
    return _shorten(_describe_check(split_comment(text)[0].strip(), names))


def _describe_manager(rest: str | None, names: ObjectNames) -> str:
    """Describe `L['x'], accessed_by=..., type=<class 'torch.Tensor'>, tag_safe=...` as `x: torch.Tensor`."""
    if rest is None:
        return ""
    end = scan_source(rest)
    found = _MANAGER_REST.match(rest, end)
    source = format_source(rest[:end] if found else rest.partition(", accessed_by=")[0])
    source = "builtins" if source == "__builtins_dict___0" else source
    cls = parse_class_name(found[1], module=True) if found else None
    return names.replace_addresses(f"{source}: {cls}" if cls else source)


def _parse_leaf(depth: int, what: str, text: str, names: ObjectNames) -> TreeLine:
    file, line, user_code = parse_user_line(split_comment(text)[1], "")
    return TreeLine(depth, what, describe_guard(text, names), f"{file}:{line}" if file else None, user_code)


def _describe_check(code: str, names: ObjectNames) -> str:
    if (tensor := format_tensor_check(code)) is not None:
        return tensor
    same = _SAME.match(code)
    end = scan_source(code, same.end()) if same else 0
    rest = _SAME_REST.match(code, end)
    if same is None or rest is None:
        return names.replace_addresses(format_source(code))
    source, cls = format_source(code[same.end() : end]), parse_class_name(rest["type"] or "", module=True)
    if same[1] == "type":
        return f"type({source}) is {names.name(source, cls or 'class', rest['id'])}"
    return f"{source} is the same object ({names.name(source, cls or 'object', rest['id'])})"


def _shorten(line: str) -> str:
    return line if len(line) <= _MAX_LINE else line[: _MAX_LINE - 3] + "..."
