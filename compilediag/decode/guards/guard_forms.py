"""The forms of torch's guard texts: one entry a form, tried in order, the first that matches counts.

Groups of a pattern: `src` is the guarded source, `exp` and `act` what was expected and found; groups whose
name begins with `type` or `dtype` are turned into a class name or a torch dtype.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from compilediag.decode.guards.guard_names import PATH, SCOPED, class_name, dispatch_difference, dtype_name, readable
from compilediag.decode.guards.guard_shapes import Parts, equality, shape

#: What a guard is about by the class of its leaf, for texts that no form fits.
LEAF_KINDS = {
    "TYPE_MATCH": "type",
    "FAKE_SCRIPT_TYPE_MATCH": "type",
    "ID_MATCH": "identity",
    "EQUALS_MATCH": "value",
    "NONE_MATCH": "value",
    "NOT_NONE": "value",
    "TRUE_MATCH": "value",
    "FALSE_MATCH": "value",
    "FLOAT_IS_NAN": "value",
    "COMPLEX_IS_NAN": "value",
    "RANGE_ITERATOR_MATCH": "value",
    "DICT_VERSION": "value",
    "SET_CONTAINS": "value",
    "LENGTH_CHECK": "length",
    "DICT_LENGTH": "length",
    "TUPLE_ITERATOR_LEN": "length",
    "DICT_CONTAINS": "dict_keys",
    "MAPPING_KEYS_MATCH": "dict_keys",
    "NO_HASATTR": "hasattr",
    "OBJECT_ALIASING": "alias",
    "NO_TENSOR_ALIASING": "alias",
    "STORAGE_OVERLAPPING": "alias",
    "SYMBOLIC_SHAPE_GUARD": "symbolic_shape",
    "DIMENSION_DYNAMIC_MARKING_GUARD": "symbolic_shape",
    "DYNAMIC_INDICES": "symbolic_shape",
    "DISPATCH_KEY_SET_MATCH": "dispatch_keys",
    "TORCH_FUNCTION_MODE_STACK": "mode_stack",
    "DEFAULT_DEVICE": "default_device",
    "GLOBAL_STATE": "global_state",
    "DUAL_LEVEL_MATCH": "global_state",
}


def _form(
    pattern: str,
    kind: str,
    source: str = "{src}",
    expected: str = "{exp}",
    actual: str | None = None,
    operand: str = "{src}",
) -> Callable[[str], Parts | None]:
    """A form told by templates over the pattern's groups (`operand`: over the groups as they stand)."""
    compiled = re.compile(pattern, re.S)

    def parse(text: str) -> Parts | None:
        found = compiled.match(text)
        if not found:
            return None
        groups = {name: _told(name, value or "") for name, value in found.groupdict().items()}
        operands = (operand.format(**found.groupdict()),) if "src" in groups else ()
        return (
            kind,
            source.format(**groups) or None,
            expected.format(**groups) or None,
            actual and actual.format(**groups),
            operands,
        )

    return parse


def _told(group: str, value: str) -> str:
    if group.startswith("src"):
        return readable(value)
    if group.startswith("type"):
        return class_name(value) or value
    if group.startswith("dtype"):
        return dtype_name(value)
    return value.strip()


def _requires_grad(text: str) -> Parts | None:
    found = re.match(r"tensor '(.+)' requires_grad mismatch\. expected requires_grad=(\w+)", text)
    if not found:
        return None
    expected = found[2] not in ("0", "False")
    name = f"{readable(found[1])}.requires_grad"
    return "requires_grad", name, str(expected), str(not expected), (found[1],)


def _dispatch_keys(text: str) -> Parts | None:
    found = re.match(
        r"tensor '(.+)' dispatch key set mismatch\. expected DispatchKeySet\(([^)]*)\), actual "
        r"DispatchKeySet\(([^)]*)\)",
        text,
    )
    if not found:
        return None
    is_device, expected, actual = dispatch_difference(found[2], found[3])
    name = readable(found[1])
    if is_device:
        return "tensor_device", f"{name}.device", expected, actual, (found[1],)
    return "dispatch_keys", name, expected, actual, (found[1],)


def _same_object(text: str) -> Parts | None:
    found = re.match(r"___check_obj_id\((.+), \d+\)(?:, type=(.*))?", text, re.S)
    if not found:
        return None
    source, cls = found[1], class_name(found[2] or "")
    if source.endswith(".__code__"):
        # CLOSURE_MATCH: a function is the same if its code is.
        return "identity", readable(source.removesuffix(".__code__")), "the same function", None, (source,)
    return "identity", readable(source), f"the same object (type {cls})" if cls else "the same object", None, (source,)


def _contains(text: str) -> Parts | None:
    found = re.match(r"(not )?___dict_contains\((.*), (.+?)(\.__dict__)?\)$", text, re.S)
    if not found:
        return None
    expected, actual = ("absent", "present") if found[1] else ("present", "absent")
    name = readable(found[3])
    if found[4]:
        return "hasattr", f"{name}.{found[2].strip(chr(39))}", expected, actual, (found[3],)
    return "dict_keys", f"{name}[{found[2]}]", expected, actual, (found[3],)


def _hasattr(text: str) -> Parts | None:
    found = re.match(r"(not )?hasattr\((.+), '([^']*)'\)( == False)?$", text)
    if not found:
        return None
    expected, actual = ("absent", "present") if found[1] or found[4] else ("present", "absent")
    kind = "symbolic_shape" if found[3].startswith("_dynamo_") else "hasattr"
    return kind, f"{readable(found[2])}.{found[3]}", expected, actual, (found[2],)


def _duplicates(text: str) -> Parts | None:
    found = re.match(r"Duplicate tensors? found(?: where not expected!|:) ?(.*)", text, re.S)
    found = found or re.match(r"check_no_aliasing\((.*)\)", text, re.S)
    if not found:
        return None
    names = SCOPED.findall(found[1]) or re.findall(r"[\w.]+", found[1])
    told = ", ".join(readable(name) for name in names) or None
    return "alias", told, "different tensors", "the same tensor", tuple(n for n in names if n[1:2] == "[")


def _overlapping(text: str) -> Parts | None:
    found = re.match(r"check_overlapping\(overlapping=\[(.*?)\], non_overlapping=\[(.*)\]\)", text, re.S)
    if not found:
        return None
    sources = [name.strip() for group in found.groups() for name in group.split(", ") if name.strip()]
    expected = f"overlapping storage: {readable(found[1]) or 'none'}"
    return "alias", ", ".join(readable(s) for s in sources) or None, expected, None, tuple(sources)


def _backend(text: str) -> Parts | None:
    if not text.startswith(("BACKEND_MATCH", "___check_current_backend", "___skip_backend_check")):
        return None
    found = re.search(r"Cached backend: (.*?)\. New backend: (.*?)\. If this is unexpected", text, re.S)
    # torch 2.11 does not tell which backends.
    old, new = found.groups() if found else ("the backend it was compiled with", "another backend")
    return "backend", "backend", old, new, ()


_IDENTITY = re.compile(rf"({PATH}) is (not )?({PATH})")


def _is(text: str) -> Parts | None:
    found = _IDENTITY.fullmatch(text) if " is " in text else None
    if not found:
        return None
    source, negated, other = found.groups()
    if other == "None":
        weak = negated and source.endswith("()")
        kind = "dead_reference" if weak else "value"
        return kind, readable(source), "not None" if negated else "None", "None" if negated else None, (source,)
    expected = f"{'not ' if negated else ''}the same object as {readable(other)}"
    actual = f"the same object as {readable(other)}" if negated else "another object"
    return "alias", readable(source), expected, actual, (source, other)


_SRC = r"(?P<src>.+)"
_raw_repr = _form(
    rf"{_SRC}\.raw_repr\(\) == DispatchKeySet\((?P<exp>.*)\)\.raw_repr\(\)$", "dispatch_keys", expected="{exp}"
)
_FORMS: tuple[Callable[[str], Parts | None], ...] = (
    # TensorCheck::check_verbose and TENSOR_MATCH, guards.cpp
    _form(
        rf"tensor '{_SRC}' size mismatch at index (?P<i>\d+)\. expected (?P<exp>-?\w+), actual (?P<act>-?\w+)",
        "tensor_size",
        "{src}.size()[{i}]",
        actual="{act}",
    ),
    _form(
        rf"tensor '{_SRC}' stride mismatch at index (?P<i>\d+)\. expected (?P<exp>-?\w+), actual (?P<act>-?\w+)",
        "tensor_stride",
        "{src}.stride()[{i}]",
        actual="{act}",
    ),
    _form(
        rf"tensor '{_SRC}' rank mismatch\. expected (?P<exp>\d+), actual (?P<act>\d+)",
        "tensor_rank",
        "{src}.dim()",
        actual="{act}",
    ),
    _form(
        rf"tensor '{_SRC}' dtype mismatch\. expected (?P<dtype>\w+), actual (?P<dtype_now>\w+)",
        "tensor_dtype",
        "{src}.dtype",
        "{dtype}",
        "{dtype_now}",
    ),
    _form(
        rf"tensor '{_SRC}' Tensor device index mismatch\. Expected device index to be (?P<exp>-?\d+), "
        r"actual (?P<act>-?\d+)",
        "tensor_device",
        "{src}.device",
        "device index {exp}",
        "device index {act}",
    ),
    _requires_grad,
    _dispatch_keys,
    # Since torch 2.14 or 2.15 the type is named.
    _form(
        rf"expected type of '{_SRC}' to be (?P<type><.*>), but found (?P<type_now><.*>)",
        "type",
        expected="{type}",
        actual="{type_now}",
    ),
    _form(
        rf"expected type of '{_SRC}' to be a tensor type, (?:'? ?but found (?P<type><.*>)|.*)",
        "type",
        expected="a tensor",
        actual="{type}",
    ),
    _form(rf"check_tensor\({_SRC}, (?P<exp>\w+, DispatchKeySet\(.*)\)$", "tensor_size"),
    _form(r"tensor has too few dimensions", "tensor_rank", "", ""),
    _form(r"not a tensor(?: - grad field is accessed )?(?P<src>.*)", "type", expected="a tensor"),
    # GuardBuilder.TYPE_MATCH, ID_MATCH, ...
    _form(
        rf"___check_(?:type_id|fake_script_type)\({_SRC}, \d+\)(?:, type=(?P<type>.*))?",
        "type",
        expected="{type}",
    ),
    _form(rf"__check_obj_id\({_SRC}, \d+\)", "dict_keys", expected="the same object"),
    _same_object,
    _form(rf"___dict_version\({_SRC}\) == (?P<v>\d+)", "value", expected="unchanged since (version {v})"),
    _contains,
    _form(
        r"set\.__contains__\((?P<src>.+), (?P<exp>.+)\)$", "value", expected="contains {exp}", actual="without {exp}"
    ),
    _form(
        r"not set\.__contains__\((?P<src>.+), (?P<exp>.+)\)$",
        "value",
        expected="without {exp}",
        actual="contains {exp}",
    ),
    _form(
        r"\(\(getattr\((?P<src>.+?), '(?P<a>\w+)', set\(\)\)\.issubset\((?P<exp>.*?)\)\).*",
        "symbolic_shape",
        "{src}.{a}",
        "within {exp}",
        operand="{src}.{a}",
    ),
    _form(
        r"\(\((?P<src>.+?)\.(?P<a>_dynamo\w+)\.issubset\((?P<exp>.*?)\)\).*",
        "symbolic_shape",
        "{src}.{a}",
        "within {exp}",
        operand="{src}.{a}",
    ),
    _form(
        r"\(\(getattr\((?P<src>.+?), '(?P<a>\w+)', None\) == (?P<exp>.*?)\) if hasattr.*",
        "symbolic_shape",
        "{src}.{a}",
        operand="{src}.{a}",
    ),
    # DIMENSION_DYNAMIC_MARKING_GUARD of torch 2.13, which does not name the tensor
    _form(
        r"(?P<a>_\w+):? not a subset: runtime (?P<act>.*) is not a subset of compiled (?P<exp>.*)",
        "symbolic_shape",
        "",
        "{a} within {exp}",
        "{act}",
    ),
    _form(
        r"(?P<a>_\w+) (?:should be absent but is present|is present on runtime tensor but was absent).*",
        "symbolic_shape",
        "",
        "{a} absent",
        "present",
    ),
    _form(
        r"(?P<a>_\w+):? (?:mismatch: )?expected (?P<exp>.*?)(?:,| but) (?P<act>actual .*|attribute is absent.*)",
        "symbolic_shape",
        "",
        "{a} {exp}",
        "{act}",
    ),
    _hasattr,
    _raw_repr,
    _form(r"\(type\((?P<src>.+?)\) is (?:float|complex) and .*", "value", expected="nan"),
    _form(rf"___tuple_iterator_len\({_SRC}\) == (?P<exp>\d+)", "length", "len({src})"),
    _form(rf"___normalize_(?:range|count)_iter\({_SRC}\) == (?P<exp>.*)", "value"),
    _form(rf"len\({_SRC}\) (?:==|!=) (?P<exp>\d+)$", "length", "len({src})"),
    _form(rf"not (?P<src>(?=\w){PATH})$", "length", "len({src})", "0"),
    _form(r"list\((?:dict\.keys\()?(?P<src>.+?)(?:\.keys\(\)|\))\) == (?P<exp>.*)", "dict_keys", "{src}.keys()"),
    _form(
        r"list\(dict\.keys\((?P<src>.+)\)\)\[(?P<i>\d+)\] == (?P<exp>.*)",
        "dict_keys",
        "list({src}.keys())[{i}]",
        operand="list(dict.keys({src}))[{i}]",
    ),
    _form(rf"(?:int|float|str|bool|complex|bytes)\((?P<src>{PATH})\) == (?P<exp>.*)", "value"),
    _form(r"___check_metadata_\d+.*", "value", "", "the same tensor subclass metadata", "other metadata"),
    _form(r"__dtensor_spec_\d+.*", "value", "", "the same DTensor spec", "another spec"),
    _form(r"___check_opaque_guard_fn_\d+.*", "value", "", "the same values of its guard_fn", "other values"),
    # the ambient state: GuardBuilder.GLOBAL_STATE, DEFAULT_DEVICE, ...
    _form(r"GLOBAL_STATE changed: (?P<what>.*)", "global_state", "{what}", "unchanged", "changed"),
    _form(r"___check_global_state\(\)(?: against (?P<exp>.*))?", "global_state", "global state"),
    _form(r"___check_torch_function_mode_stack\(\)", "mode_stack", "torch function modes", "the same modes"),
    _form(r"torch\._functorch\.pyfunctorch\.compare_functorch_state\((?P<exp>.*)\)", "mode_stack", "functorch levels"),
    _form(r"utils_device\.CURRENT_DEVICE == (?P<exp>.*)", "default_device", "torch.get_default_device()"),
    _form(r"torch\.autograd\.forward_ad\._current_level == (?P<exp>.*)", "global_state", "forward AD level"),
    _form(
        r"torch\._functorch\.\w+\.utils\.top_saved_tensors_hooks ids == (?P<exp>.*)",
        "global_state",
        "saved tensors hooks",
    ),
    # accessors that could not reach the value, guards.cpp
    _form(r"getattr failed on source (?P<src>.*)", "hasattr", expected="present", actual="missing"),
    _form(r"KeyError on (?P<src>.*)", "dict_keys", expected="present", actual="missing"),
    _form(r"IndexError on (?P<src>.*)", "length", expected="present", actual="missing"),
    _form(r"IndexError TupleIteratorGetItemAccessor.*", "length", "", "present", "missing"),
    _form(r"TYPE_MISMATCH\((?P<src>.*)\)", "type", expected=""),
    _form(r"Not a weakref (?:obj )?(?P<src>.*)", "dead_reference", expected="a weak reference"),
    _form(r"Weakref_GetRef failed (?P<src>.*)", "dead_reference", expected="a weak reference"),
    _form(
        r"\w+GuardAccessor(?:\(.*?\))?: Not a function on (?P<src>.*)\.__\w+__$", "type", expected="a Python function"
    ),
    _form(r"null type dict on .*", "type", "", ""),
    _form(r"Non (?:tuple|integer|float|integer index) found!|symbolic values found", "symbolic_shape", "", ""),
    _form(r'"?Shape guard failed with values: (?P<act>[^"]*)"?', "symbolic_shape", "", "", "{act}"),
    # the rest
    _duplicates,
    _overlapping,
    _backend,
    _form(
        r"Cache line invalidated because (?P<src>.*) got deallocated",
        "dead_reference",
        expected="alive",
        actual="deallocated",
    ),
    _is,
    equality,
    shape,
)


#: What a text can be that begins with a source: the commonest of all, so it is not held against every form.
_SOURCE_FIRST = (_raw_repr, _is, equality, shape)
_SHAPE_FIRST = (_is, shape, *_FORMS)


def match_form(code: str, is_shape: bool = False) -> Parts:
    """The parts of a guard text without its comment; kind "other" if no form fits. `is_shape`: it is ShapeEnv's."""
    forms = _SOURCE_FIRST if code.startswith(("L['", "G['")) else _FORMS
    for form in _SHAPE_FIRST if is_shape else forms:
        parts = form(code)
        if parts:
            return parts
    return "other", None, None, None, ()
