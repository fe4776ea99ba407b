"""torch's guard texts, parsed: the guarded value, what was expected, what was found, and the line that caused it.

There are three kinds of text. A *code part* is what a guard checks, with the user's line as a comment:
`L['k'] == 1   # y = x + k  # g.py:7 in forward`. A *failure* is what C++ reports of the value that it found:
`tensor 'L['x']' size mismatch at index 0. expected 2, actual 3`. A *reason* is either of them after a
compile id and perhaps before a stack. torch makes them in torch/_dynamo/guards.py (the
methods of GuardBuilder) and torch/csrc/dynamo/guards.cpp, read at torch 2.11, 2.13 and 2.15.

The text of a guard tree is what `GuardManagerWrapper.__str__` prints (torch/_dynamo/guards.py): a line per manager or
leaf guard, indented by `| ` and marked by `+- `. Managers are the nodes (`source=L['x'], accessed_by=..., type=<class
...>`), leaf guards are checks. A line with the time that all guards take can follow.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from ...formatting import bound_text, cache_short, cut_text
from ..call_stacks import find_user_line
from .guard_forms import LEAF_KINDS, QUOTING, Check, parse_class_name, read_check
from .path import MAX_PARSED, STRING, Path, Step, format_source, scan_source

_COMPILE_ID = re.compile(r"^(?:[-*\s]*)(?:\[?!?\d+/\d+(?:_\d+)?(?:/\d+)?\]?: )?")
_STACK = "User stack trace:\n"
#: torch's comment after a code part, and the strings before it: "  # " in a string does not begin a comment.
_STRING_OR_COMMENT = re.compile(rf"{STRING}|\s+# ", re.S)
#: Where a text is too long to look at all of it: the comment after the end of a constant.
_COMMENT_AT_END = re.compile(r"""(?<=['"\])}])\s+# """)
#: In parentheses if the line is torch's own.
_PLACE = re.compile(r"  # \(?(?P<file>[^\s#:][^#:\n]*(?::\\[^#:\n]*)?):(?P<line>\d{1,9}) in \S+")
_HINT = re.compile(r"\(HINT: (?P<hint>.*)\)\s*$", re.S)
_CLOSURE_HINT = re.compile(r'guard on "([^"]+)"(\S*?)(?:,|\)|$)')
#: Most characters of expected and actual, which are shown in one line; `text` has all of them.
_MAX_VALUE = 200


class ParsedGuard(NamedTuple):
    """One guard. `operands` are the guarded values; `text` is torch's, or its beginning and a digest if it is long."""

    source: str | None
    kind: str
    expected: str | None
    actual: str | None
    user_file: str | None
    user_line: int | None
    user_code: str | None
    text: str
    operands: tuple[Path, ...] = ()


def parse_guard(text: str, leaf: str | None = None) -> ParsedGuard:
    """Parse one guard text (see the module's docstring); never raises on a str.

    `leaf`: the C++ class of the guard if it is known (`TENSOR_MATCH`, `EQUALS_MATCH`, ...). It decides the kind if
    the text does not. A text of unknown form has kind "other" and no source.
    """
    parsed = _parse(text, leaf == "SYMBOLIC_SHAPE_GUARD")
    if parsed.kind == "other" and leaf in LEAF_KINDS:
        return parsed._replace(kind=LEAF_KINDS[leaf])
    return parsed


@cache_short(4096)
def _parse(text: str, is_shape: bool) -> ParsedGuard:
    body, _, stack = text.partition(_STACK)
    body = _COMPILE_ID.sub("", body, count=1).rstrip()
    code, comment = split_comment(body)
    hint = _HINT.search(comment[-MAX_PARSED:])
    if not comment and len(code) <= MAX_PARSED and (hint := _HINT.search(code)):
        code = code[: hint.start()]
    check = read_check(code.strip(), is_shape)
    file, line, user_code = parse_user_line(comment, stack)
    return ParsedGuard(
        source=bound_text(_name_closure(check, hint) or "") or None,
        kind=check.kind,
        expected=None if check.expected is None else cut_text(check.expected, _MAX_VALUE),
        actual=None if check.actual is None else cut_text(check.actual, _MAX_VALUE),
        user_file=file,
        user_line=line,
        user_code=user_code,
        text=bound_text(text.strip()),
        operands=check.operands,
    )


def split_comment(body: str) -> tuple[str, str]:
    """Return the code part and torch's comment after it: the user's line, or why the guard exists."""
    start = next((scan_source(body, len(prose)) for prose in QUOTING if body.startswith(prose)), 0)
    if len(body) > MAX_PARSED:
        start = len(body) - MAX_PARSED
        found = _COMMENT_AT_END.search(body, start)
    else:
        found = next((one for one in _STRING_OR_COMMENT.finditer(body, start) if one.group()[0] not in "'\""), None)
    return (body, "") if found is None else (body[: found.start()], body[found.end() :])


@cache_short(256)
def parse_user_line(comment: str, stack: str) -> tuple[str | None, int | None, str | None]:
    """Return file, line and code of the user's line: from the stack (whole paths) if there is one, else the comment.

    Cached: the guards of a storm of recompiles differ in their values, and have one comment.
    """
    found = find_user_line(stack)
    if found is not None:
        return found
    # With this prefix one pattern finds a place with and without code before it, and its literal start is fast.
    marked = f"  # {comment}"
    place = _PLACE.search(marked)
    if not place or place["file"].startswith("_dynamo"):
        # Guards on global state come from a line of Dynamo itself.
        return None, None, None
    return place["file"], int(place["line"]), marked[4 : place.start()].strip() or None


def _name_closure(check: Check, hint: re.Match[str] | None) -> str | None:
    """Return the name of `fn.__closure__[0].cell_contents`, which torch 2.13 writes into the hint."""
    named = _CLOSURE_HINT.search(hint["hint"]) if hint else None
    if check.source is None or named is None or not check.operands:
        return check.source
    path = check.operands[0]
    cells = [at for at, step in enumerate(path.steps) if step == Step("attr", "cell_contents")]
    if not cells:
        return check.source
    cell = Path(path.root, path.scope, path.steps[: cells[-1] + 1])
    return check.source.replace(cell.text, named[1])


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


@cache_short(4096)
def find_torch_source(source: str, reason: str | None) -> str | None:
    """Find torch's name of a guarded value, for `torch.compiler.config.dynamic_sources`; None if it is not certain.

    Only torch's own text of the guard has globals (`G['n']`) and the dicts of modules (`self._buffers['b']`), which
    users never write. Without that text only the name of a local is certain.
    """
    owner = Path.of(source).owner
    operands = parse_guard(reason).operands if reason else ()
    for path in operands:
        if path.owner.text == owner.text:
            return path.owner.torch_name
    if len(operands) == 1 and f'(HINT: guard on "{owner.text}")' in (reason or ""):
        return operands[0].owner.torch_name  # A variable of a function that was passed in.
    return None if owner.steps else owner.torch_name


# Guard trees

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
        return TreeLine(depth, manager[1], cut_text(_describe_manager(manager[2], names), _MAX_LINE), None, None)
    leaf = _LEAF.fullmatch(body)
    if leaf is None:
        return TreeLine(depth, "", cut_text(names.replace_addresses(body), _MAX_LINE), None, None)
    what, text = leaf[1], leaf[2] or ""
    file, line_number, user_code = parse_user_line(split_comment(text)[1], "")
    place = f"{file}:{line_number}" if file else None
    return TreeLine(depth, what, describe_guard(text, names), place, user_code)


def describe_guard(text: str, names: ObjectNames) -> str:
    """Describe what a leaf guard checks, from its text: without the line that caused it, with names for objects."""
    code = split_comment(text)[0].strip()
    same = _SAME.match(code)
    end = scan_source(code, same.end()) if same else 0
    if (tensor := TensorCheck.parse(code)) is not None:
        # What differs most often comes first.
        rest = code[scan_source(code, len(_START)) :]
        size, settings = rest.rpartition(", size=")[2], rest.partition("), ")[2].partition(", size=")[0]
        described = f"{tensor.name}: {tensor.pytype} size={size[:-1]}, {settings}, DispatchKeySet({tensor.keys})"
    elif same is not None and (about := _SAME_REST.match(code, end)) is not None:
        source, cls = format_source(code[same.end() : end]), parse_class_name(about["type"] or "", module=True)
        if same[1] == "type":
            described = f"type({source}) is {names.name(source, cls or 'class', about['id'])}"
        else:
            described = f"{source} is the same object ({names.name(source, cls or 'object', about['id'])})"
    else:
        described = names.replace_addresses(format_source(code))
    return cut_text(described, _MAX_LINE)


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
