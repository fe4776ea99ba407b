"""Guard texts that one pattern does not describe. Each function parses one; None for any other text."""

from __future__ import annotations

import re

from .guard_expressions import Parts
from .source_names import PATH, SCOPED, compare_dispatch_keys, format_source, parse_class_name


def parse_requires_grad(text: str) -> Parts | None:
    found = re.match(r"tensor '(.+)' requires_grad mismatch\. expected requires_grad=(\w+)", text)
    if not found:
        return None
    expected = found[2] not in ("0", "False")
    name = f"{format_source(found[1])}.requires_grad"
    return "requires_grad", name, str(expected), str(not expected), (found[1],)


def parse_dispatch_keys(text: str) -> Parts | None:
    found = re.match(
        r"tensor '(.+)' dispatch key set mismatch\. expected DispatchKeySet\(([^)]*)\), actual "
        r"DispatchKeySet\(([^)]*)\)",
        text,
    )
    if not found:
        return None
    is_device, expected, actual = compare_dispatch_keys(found[2], found[3])
    name = format_source(found[1])
    if is_device:
        return "tensor_device", f"{name}.device", expected, actual, (found[1],)
    return "dispatch_keys", name, expected, actual, (found[1],)


def parse_same_object(text: str) -> Parts | None:
    found = re.match(r"___check_obj_id\((.+), \d+\)(?:, type=(.*))?", text, re.S)
    if not found:
        return None
    source, cls = found[1], parse_class_name(found[2] or "")
    if source.endswith(".__code__"):
        # CLOSURE_MATCH: a function is the same if its code is.
        return "identity", format_source(source.removesuffix(".__code__")), "the same function", None, (source,)
    return (
        "identity",
        format_source(source),
        f"the same object (type {cls})" if cls else "the same object",
        None,
        (source,),
    )


def parse_contains(text: str) -> Parts | None:
    found = re.match(r"(not )?___dict_contains\((.*), (.+?)(\.__dict__)?\)$", text, re.S)
    if not found:
        return None
    expected, actual = ("absent", "present") if found[1] else ("present", "absent")
    name = format_source(found[3])
    if found[4]:
        return "hasattr", f"{name}.{found[2].strip(chr(39))}", expected, actual, (found[3],)
    return "dict_keys", f"{name}[{found[2]}]", expected, actual, (found[3],)


def parse_hasattr(text: str) -> Parts | None:
    found = re.match(r"(not )?hasattr\((.+), '([^']*)'\)( == False)?$", text)
    if not found:
        return None
    expected, actual = ("absent", "present") if found[1] or found[4] else ("present", "absent")
    kind = "symbolic_shape" if found[3].startswith("_dynamo_") else "hasattr"
    return kind, f"{format_source(found[2])}.{found[3]}", expected, actual, (found[2],)


def parse_duplicates(text: str) -> Parts | None:
    found = re.match(r"Duplicate tensors? found(?: where not expected!|:) ?(.*)", text, re.S)
    found = found or re.match(r"check_no_aliasing\((.*)\)", text, re.S)
    if not found:
        return None
    names = SCOPED.findall(found[1]) or re.findall(r"[\w.]+", found[1])
    sources = ", ".join(format_source(name) for name in names) or None
    return "alias", sources, "different tensors", "the same tensor", tuple(n for n in names if n[1:2] == "[")


def parse_overlapping(text: str) -> Parts | None:
    found = re.match(r"check_overlapping\(overlapping=\[(.*?)\], non_overlapping=\[(.*)\]\)", text, re.S)
    if not found:
        return None
    sources = [name.strip() for group in found.groups() for name in group.split(", ") if name.strip()]
    expected = f"overlapping storage: {format_source(found[1]) or 'none'}"
    return "alias", ", ".join(format_source(s) for s in sources) or None, expected, None, tuple(sources)


def parse_backend(text: str) -> Parts | None:
    if not text.startswith(("BACKEND_MATCH", "___check_current_backend", "___skip_backend_check")):
        return None
    found = re.search(r"Cached backend: (.*?)\. New backend: (.*?)\. If this is unexpected", text, re.S)
    # torch 2.11 does not name the backends.
    old, new = found.groups() if found else ("the backend it was compiled with", "another backend")
    return "backend", "backend", old, new, ()


_IDENTITY = re.compile(rf"({PATH}) is (not )?({PATH})")


def parse_is(text: str) -> Parts | None:
    found = _IDENTITY.fullmatch(text) if " is " in text else None
    if not found:
        return None
    source, negated, other = found.groups()
    if other == "None":
        weak = negated and source.endswith("()")
        kind = "dead_reference" if weak else "value"
        return kind, format_source(source), "not None" if negated else "None", "None" if negated else None, (source,)
    expected = f"{'not ' if negated else ''}the same object as {format_source(other)}"
    actual = f"the same object as {format_source(other)}" if negated else "another object"
    return "alias", format_source(source), expected, actual, (source, other)


_STREAM = re.compile(rf"({PATH}) (==|!=) ___get_current_stream\(torch\.device\('(\w+)'\)\)")


def parse_current_stream(text: str) -> Parts | None:
    """Parse the guard of torch 2.15 on whether a stream is the current one; it is evaluated by torch alone."""
    found = _STREAM.match(text)
    if not found:
        return None
    name = format_source(found[1])
    expected, actual = (name, "another stream") if found[2] == "==" else ("another stream", name)
    return "global_state", f"current {found[3]} stream", expected, actual, ()


_RANGE = re.compile(r"_DimRange\(dim=(\d+), min=(\w+), max=(\w+)\)")


def format_dim_ranges(text: str) -> str:
    """Format the ranges that mark_dynamic got: `{_DimRange(dim=0, min=2, max=16)}` -> `dim 0: 2 to 16`."""
    ranges = sorted((int(dim), low, high) for dim, low, high in _RANGE.findall(text))
    bounds = (
        f"dim {dim}: {'any' if low == 'None' else low} to {'any' if high == 'None' else high}"
        for dim, low, high in ranges
    )
    return ", ".join(bounds) or "no range"


def parse_dim_ranges(text: str) -> Parts | None:
    """Parse the guard of torch 2.15 on the bounds that mark_dynamic got. The text of C++ does not name the tensor."""
    found = re.match(r"_dynamo_dynamic_range mismatch: expected (?P<exp>.*)", text, re.S)
    if found:
        return "symbolic_shape", None, f"_dynamo_dynamic_range {format_dim_ranges(found['exp'])}", None, ()
    found = re.match(
        r"\(\(getattr\((?P<src>.+?), '_dynamo_dynamic_range', None\) == (?P<exp>.*?)\) if hasattr", text, re.S
    )
    if not found:
        return None
    operand = f"{found['src']}._dynamo_dynamic_range"
    return "symbolic_shape", format_source(operand), format_dim_ranges(found["exp"]), None, (operand,)
