"""Guards that are expressions: an equality with a constant, or anything over sizes and ints (ShapeEnv's guards)."""

from __future__ import annotations

import re

from .source_names import PATH, SCOPED, format_source

#: The parts of a guard: (kind, source, expected, actual, operands)
Parts = tuple[str, str | None, str | None, str | None, tuple[str, ...]]

_SHAPE_SOURCE = re.compile(rf"(?:[A-Za-z_]\w*(?:{PATH})?\.(?:size\(\)\[\d+\]|stride\(\)\[\d+\]|storage_offset\(\)))")
_NAME = re.compile(r"[A-Za-z_]\w*(?:\.\w+)*(?![\w.(])")
_COMPARED = re.compile(r" (?:<=|<|>=|>|!=|==|%|//) |\b(?:Eq|Ne|Mod|Max|Min|And|Or)\(|^not |__math_isnan")
_EQUALITY = re.compile(rf"({PATH}) == (.*)$", re.S)
_SIZE = re.compile(r"\.(?:size|stride)\(\)\[\d+\]$")
_NOT_NAMES = {"not", "and", "or", "True", "False", "inf", "math", "is"}


def parse_equality(text: str) -> Parts | None:
    """Parse `source == constant`; None for any other text."""
    found = _EQUALITY.match(text)
    if not found or _is_shape(found[1]) or _has_source(found[2]):
        return None
    return "value", format_source(found[1]), found[2].strip(), None, (found[1],)


def _has_source(text: str) -> bool:
    """Return True for an expression over sources: an equality with it compares two values that can both change."""
    is_text = text.startswith(("'", '"'))
    return not is_text and (SCOPED.search(text) is not None or _SHAPE_SOURCE.match(text) is not None)


def _is_shape(source: str) -> bool:
    return source.endswith("storage_offset()") or _SIZE.search(source) is not None


def parse_shape(text: str) -> Parts | None:
    """Parse an expression over sizes and ints, from ShapeEnv.produce_guards_verbose; None for any other text."""
    if not _COMPARED.search(text):
        return None
    sources = list(dict.fromkeys(_SHAPE_SOURCE.findall(text) + SCOPED.findall(_SHAPE_SOURCE.sub("", text))))
    sources = sources or [n for n in dict.fromkeys(_NAME.findall(text)) if n not in _NOT_NAMES]
    if not sources:
        return None
    names = ", ".join(format_source(s) for s in sources)
    expected = _format_bound(text, sources[0]) if len(sources) == 1 else format_source(text)
    return "symbolic_shape", names, expected, None, tuple(sources)


def _format_bound(text: str, source: str) -> str:
    """Format what an expression requires of its source, if it has a simple form: `2 <= n` -> `>= 2`."""
    first = re.escape(source)
    if found := re.fullmatch(rf"(-?\d+) (<=?) {first}(?: (<=?) (-?\d+))?", text):
        upper = f" and {found[3]} {found[4]}" if found[3] else ""
        return f"{found[2].replace('<', '>')} {found[1]}{upper}"
    if found := re.fullmatch(rf"{first} (<=?|>=?|!=) (-?\d+)", text):
        return f"{found[1]} {found[2]}"
    if found := re.fullmatch(rf"{first} == (-?\d+)|Eq\({first}, (-?\d+)\)", text):
        return found[1] or found[2]
    if found := re.fullmatch(rf"Ne\({first}, (-?\d+)\)", text):
        return f"!= {found[1]}"
    return format_source(text)
