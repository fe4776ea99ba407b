"""The forms of torch's guard texts, one entry each. They are tried in order, and the first match counts.

Groups of a pattern: `src` is the guarded source, `exp` and `act` what was expected and found; groups whose
name begins with `type` or `dtype` are turned into a class name or a torch dtype.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from .guard_expressions import Parts, parse_equality, parse_shape
from .source_names import PATH, format_dtype, format_source, parse_class_name
from .special_forms import (
    parse_backend,
    parse_contains,
    parse_current_stream,
    parse_dim_ranges,
    parse_dispatch_keys,
    parse_duplicates,
    parse_hasattr,
    parse_is,
    parse_overlapping,
    parse_requires_grad,
    parse_same_object,
)

#: C++ class of a guard -> its kind, for texts that match no form.
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


def _make_form(
    pattern: str,
    kind: str,
    source: str = "{src}",
    expected: str = "{exp}",
    actual: str | None = None,
    operand: str = "{src}",
) -> Callable[[str], Parts | None]:
    """Make a form from a pattern and templates over its groups (`operand`: over the unformatted groups)."""
    compiled = re.compile(pattern, re.S)

    def parse(text: str) -> Parts | None:
        found = compiled.match(text)
        if not found:
            return None
        groups = {name: _format_group(name, value or "") for name, value in found.groupdict().items()}
        operands = (operand.format(**found.groupdict()),) if "src" in groups else ()
        return (
            kind,
            source.format(**groups) or None,
            expected.format(**groups) or None,
            actual and actual.format(**groups),
            operands,
        )

    return parse


def _format_group(group: str, value: str) -> str:
    if group.startswith("src"):
        return format_source(value)
    if group.startswith("type"):
        return parse_class_name(value) or value
    if group.startswith("dtype"):
        return format_dtype(value)
    return value.strip()


_SRC = r"(?P<src>.+)"
_parse_raw_repr = _make_form(
    rf"{_SRC}\.raw_repr\(\) == DispatchKeySet\((?P<exp>.*)\)\.raw_repr\(\)$", "dispatch_keys", expected="{exp}"
)
_FORMS: tuple[Callable[[str], Parts | None], ...] = (
    # TensorCheck::check_verbose and TENSOR_MATCH, guards.cpp
    _make_form(
        rf"tensor '{_SRC}' size mismatch at index (?P<i>\d+)\. expected (?P<exp>-?\w+), actual (?P<act>-?\w+)",
        "tensor_size",
        "{src}.size()[{i}]",
        actual="{act}",
    ),
    _make_form(
        rf"tensor '{_SRC}' stride mismatch at index (?P<i>\d+)\. expected (?P<exp>-?\w+), actual (?P<act>-?\w+)",
        "tensor_stride",
        "{src}.stride()[{i}]",
        actual="{act}",
    ),
    _make_form(
        rf"tensor '{_SRC}' rank mismatch\. expected (?P<exp>\d+), actual (?P<act>\d+)",
        "tensor_rank",
        "{src}.dim()",
        actual="{act}",
    ),
    _make_form(
        rf"tensor '{_SRC}' dtype mismatch\. expected (?P<dtype>\w+), actual (?P<dtype_now>\w+)",
        "tensor_dtype",
        "{src}.dtype",
        "{dtype}",
        "{dtype_now}",
    ),
    _make_form(
        rf"tensor '{_SRC}' Tensor device index mismatch\. Expected device index to be (?P<exp>-?\d+), "
        r"actual (?P<act>-?\d+)",
        "tensor_device",
        "{src}.device",
        "device index {exp}",
        "device index {act}",
    ),
    parse_requires_grad,
    parse_dispatch_keys,
    # torch 2.14 or 2.15 and later name the type.
    _make_form(
        rf"expected type of '{_SRC}' to be (?P<type><.*>), but found (?P<type_now><.*>)",
        "type",
        expected="{type}",
        actual="{type_now}",
    ),
    _make_form(
        rf"expected type of '{_SRC}' to be a tensor type, (?:'? ?but found (?P<type><.*>)|.*)",
        "type",
        expected="a tensor",
        actual="{type}",
    ),
    _make_form(rf"check_tensor\({_SRC}, (?P<exp>\w+, DispatchKeySet\(.*)\)$", "tensor_size"),
    _make_form(r"tensor has too few dimensions", "tensor_rank", "", ""),
    _make_form(r"not a tensor(?: - grad field is accessed )?(?P<src>.*)", "type", expected="a tensor"),
    # GuardBuilder.TYPE_MATCH, ID_MATCH, ...
    _make_form(
        rf"___check_(?:type_id|fake_script_type)\({_SRC}, \d+\)(?:, type=(?P<type>.*))?",
        "type",
        expected="{type}",
    ),
    _make_form(rf"__check_obj_id\({_SRC}, \d+\)", "dict_keys", expected="the same object"),
    parse_same_object,
    _make_form(rf"___dict_version\({_SRC}\) == (?P<v>\d+)", "value", expected="unchanged since (version {v})"),
    parse_contains,
    _make_form(
        r"set\.__contains__\((?P<src>.+), (?P<exp>.+)\)$", "value", expected="contains {exp}", actual="without {exp}"
    ),
    _make_form(
        r"not set\.__contains__\((?P<src>.+), (?P<exp>.+)\)$",
        "value",
        expected="without {exp}",
        actual="contains {exp}",
    ),
    _make_form(
        r"\(\(getattr\((?P<src>.+?), '(?P<a>\w+)', set\(\)\)\.issubset\((?P<exp>.*?)\)\).*",
        "symbolic_shape",
        "{src}.{a}",
        "within {exp}",
        operand="{src}.{a}",
    ),
    _make_form(
        r"\(\((?P<src>.+?)\.(?P<a>_dynamo\w+)\.issubset\((?P<exp>.*?)\)\).*",
        "symbolic_shape",
        "{src}.{a}",
        "within {exp}",
        operand="{src}.{a}",
    ),
    parse_dim_ranges,
    _make_form(
        r"\(\(getattr\((?P<src>.+?), '(?P<a>\w+)', None\) == (?P<exp>.*?)\) if hasattr.*",
        "symbolic_shape",
        "{src}.{a}",
        operand="{src}.{a}",
    ),
    # DIMENSION_DYNAMIC_MARKING_GUARD of torch 2.13, which does not name the tensor
    _make_form(
        r"(?P<a>_\w+):? not a subset: runtime (?P<act>.*) is not a subset of compiled (?P<exp>.*)",
        "symbolic_shape",
        "",
        "{a} within {exp}",
        "{act}",
    ),
    _make_form(
        r"(?P<a>_\w+) (?:should be absent but is present|is present on runtime tensor but was absent).*",
        "symbolic_shape",
        "",
        "{a} absent",
        "present",
    ),
    _make_form(
        r"(?P<a>_\w+):? (?:mismatch: )?expected (?P<exp>.*?)(?:,| but) (?P<act>actual .*|attribute is absent.*)",
        "symbolic_shape",
        "",
        "{a} {exp}",
        "{act}",
    ),
    _make_form(r"(?P<a>_\w+):? mismatch: expected (?P<exp>.*)", "symbolic_shape", "", "{a} {exp}"),
    parse_hasattr,
    _parse_raw_repr,
    _make_form(r"\(type\((?P<src>.+?)\) is (?:float|complex) and .*", "value", expected="nan"),
    _make_form(rf"___(?:tuple_iterator|list_reverseiterator)_len\({_SRC}\) == (?P<exp>\d+)", "length", "len({src})"),
    _make_form(rf"(?:frozen)?set\.__len__\({_SRC}\) == (?P<exp>\d+)", "length", "len({src})"),
    # torch 2.15: whether a tensor is one that torch._lazy_clone made and that nobody has written to
    _make_form(rf"___cow_tensor_matches\({_SRC}, True\)", "value", "torch._C._is_cow_tensor({src})", "True", "False"),
    _make_form(rf"___cow_tensor_matches\({_SRC}, False\)", "value", "torch._C._is_cow_tensor({src})", "False", "True"),
    _make_form(rf"___normalize_(?:range|count)_iter\({_SRC}\) == (?P<exp>.*)", "value"),
    _make_form(rf"len\({_SRC}\) (?:==|!=) (?P<exp>\d+)$", "length", "len({src})"),
    _make_form(rf"not (?P<src>(?=\w){PATH})$", "length", "len({src})", "0"),
    _make_form(r"list\((?:dict\.keys\()?(?P<src>.+?)(?:\.keys\(\)|\))\) == (?P<exp>.*)", "dict_keys", "{src}.keys()"),
    _make_form(
        r"list\(dict\.keys\((?P<src>.+)\)\)\[(?P<i>\d+)\] == (?P<exp>.*)",
        "dict_keys",
        "list({src}.keys())[{i}]",
        operand="list(dict.keys({src}))[{i}]",
    ),
    _make_form(rf"(?:int|float|str|bool|complex|bytes)\((?P<src>{PATH})\) == (?P<exp>.*)", "value"),
    _make_form(r"___check_metadata_\d+.*", "value", "", "the same tensor subclass metadata", "other metadata"),
    _make_form(r"__dtensor_spec_\d+.*", "value", "", "the same DTensor spec", "another spec"),
    _make_form(r"___check_opaque_guard_fn_\d+.*", "value", "", "the same values of its guard_fn", "other values"),
    # the ambient state: GuardBuilder.GLOBAL_STATE, DEFAULT_DEVICE, ...
    _make_form(r"GLOBAL_STATE changed: (?P<what>.*)", "global_state", "{what}", "unchanged", "changed"),
    _make_form(r"___check_global_state\(\)(?: against (?P<exp>.*))?", "global_state", "global state"),
    _make_form(r"___check_torch_function_mode_stack\(\)", "mode_stack", "torch function modes", "the same modes"),
    _make_form(
        r"torch\._functorch\.pyfunctorch\.compare_functorch_state\((?P<exp>.*)\)", "mode_stack", "functorch levels"
    ),
    _make_form(r"utils_device\.CURRENT_DEVICE == (?P<exp>.*)", "default_device", "torch.get_default_device()"),
    _make_form(r"torch\.autograd\.forward_ad\._current_level == (?P<exp>.*)", "global_state", "forward AD level"),
    _make_form(
        r"torch\._functorch\.\w+\.utils\.top_saved_tensors_hooks ids == (?P<exp>.*)",
        "global_state",
        "saved tensors hooks",
    ),
    # accessors that fail to reach the value, guards.cpp
    _make_form(r"getattr failed on source (?P<src>.*)", "hasattr", expected="present", actual="missing"),
    _make_form(r"KeyError on (?P<src>.*)", "dict_keys", expected="present", actual="missing"),
    _make_form(r"IndexError on (?P<src>.*)", "length", expected="present", actual="missing"),
    _make_form(r"IndexError TupleIteratorGetItemAccessor.*", "length", "", "present", "missing"),
    _make_form(r"TYPE_MISMATCH\((?P<src>.*)\)", "type", expected=""),
    _make_form(r"Not a weakref (?:obj )?(?P<src>.*)", "dead_reference", expected="a weak reference"),
    _make_form(r"Weakref_GetRef failed (?P<src>.*)", "dead_reference", expected="a weak reference"),
    _make_form(
        r"\w+GuardAccessor(?:\(.*?\))?: Not a function on (?P<src>.*)\.__\w+__$", "type", expected="a Python function"
    ),
    _make_form(r"null type dict on .*", "type", "", ""),
    _make_form(r"Non (?:tuple|integer|float|integer index) found!|symbolic values found", "symbolic_shape", "", ""),
    _make_form(r'"?Shape guard failed with values: (?P<act>[^"]*)"?', "symbolic_shape", "", "", "{act}"),
    # the rest
    parse_duplicates,
    parse_overlapping,
    parse_backend,
    _make_form(
        r"Cache line invalidated because (?P<src>.*) got deallocated",
        "dead_reference",
        expected="alive",
        actual="deallocated",
    ),
    parse_is,
    parse_current_stream,
    parse_equality,
    parse_shape,
)


#: Forms of a text that begins with a source. These are the most frequent ones, so the other forms are not tried.
_SOURCE_FIRST = (_parse_raw_repr, parse_is, parse_current_stream, parse_equality, parse_shape)
_SHAPE_FIRST = (parse_is, parse_shape, *_FORMS)


def match_form(code: str, is_shape: bool = False) -> Parts:
    """Parse a guard text without its comment; kind "other" if no form matches. `is_shape`: the guard is ShapeEnv's."""
    forms = _SOURCE_FIRST if code.startswith(("L['", "G['")) else _FORMS
    for form in _SHAPE_FIRST if is_shape else forms:
        parts = form(code)
        if parts:
            return parts
    return "other", None, None, None, ()
