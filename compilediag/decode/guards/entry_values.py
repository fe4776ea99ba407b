"""The guarded values that an entry was made for, from the guards of that entry.

torch's reason for a recompile has the value that the earlier entry needs, and often not the one that its guard met. The
new entry has that one: where `n == 1` failed and the new entry has `n == 2`, n was 2.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice

from .cpp_names import parse_class_name
from .guard_text import ParsedGuard, parse_guard
from .path import Path, format_source, scan_source
from .tensor_text import TensorCheck

#: (source, kind of guard) -> value.
Values = dict[tuple[str | None, str], str]

#: Guards on tensors that are remembered for one entry.
MAX_TENSORS = 1_000

#: A leaf of the guard tree as torch prints it, after a line end: `^` is ten times slower.
_LEAF = re.compile(r"\n[| +-]*\+- (?P<leaf>[A-Z_0-9]+): (?P<code>.*)")
_TENSOR_LEAF = re.compile(r"\n[| +-]*\+- TENSOR_MATCH: (.*)")
_MANAGER = re.compile(r"Manager: source=")
_LAST_NAME = re.compile(r"\w+(?=\W*$)")
#: Kinds of guards that name a size or a number by its source.
_BY_SOURCE = ("symbolic_shape", "tensor_size", "value")


def read_guard_values(text: str, sources: Iterable[str | None]) -> Values:
    """Return the values of `sources` in a printed guard tree, or in the list of guards that torch before 2.5 wrote."""
    names = {found[0] for source in sources if source and (found := _LAST_NAME.search(_remove_items(source)))}
    values: Values = {}
    for manager in _MANAGER.finditer(text):
        end = scan_source(text, manager.end())
        source, line_end = text[manager.end() : end], text.find("\n", end)
        type_name = parse_class_name(text[end : line_end if line_end >= 0 else None].rpartition(" type=")[2])
        if type_name and any(name in source for name in names):
            values[format_source(source), "type"] = type_name
    for leaf, code in _split_guards(text):
        if not any(name in code for name in names):
            continue
        guard = parse_guard(code, leaf)
        # Of ShapeEnv's guards only an equality with a number has the value.
        if guard.expected is not None and (guard.kind != "symbolic_shape" or guard.expected.lstrip("-").isdecimal()):
            values[guard.source, guard.kind] = guard.expected
        if tensor := TensorCheck.parse(code):
            for dim, size in enumerate(tensor.size):
                if size is not None:
                    values.update({(f"{tensor.name}.size()[{dim}]", kind): str(size) for kind in _BY_SOURCE})
    return values


def read_symbol_value(body: Mapping[str, object]) -> Values:
    """Return the value that torch made a symbol for, from the record of that symbol."""
    source, value = body.get("source"), body.get("val")
    if not isinstance(source, str) or value is None:
        return {}
    return {(format_source(source), kind): str(value) for kind in _BY_SOURCE}


def find_tensor_guards(text: str) -> list[str]:
    """Return the guards on tensors in a printed guard tree: torch's reasons lack the lines that caused them."""
    return [found[1] for found in islice(_TENSOR_LEAF.finditer("\n" + text), MAX_TENSORS)]


def match_tensor_guard(guards: Iterable[str], source: str | None) -> ParsedGuard | None:
    """Return the guard on the tensor of `source`: `x.size()[0]`, `x.dtype` or `x`."""
    for code in guards:
        tensor = TensorCheck.parse(code)
        name = tensor.name if tensor else None
        if name and source and Path.of(name).holds(Path.of(source)):
            return parse_guard(code, "TENSOR_MATCH")
    return None


def _remove_items(source: str) -> str:
    return re.sub(r"(?:\.size\(\)|\.stride\(\)|\[\d+\]|\(\))+$", "", source)


def _split_guards(text: str) -> Iterator[tuple[str | None, str]]:
    if not text.startswith("["):
        yield from ((found["leaf"], found["code"]) for found in _LEAF.finditer("\n" + text))
        return
    for guard in json.loads(text):
        yield None, str(guard["code"])
