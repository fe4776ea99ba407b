"""Names in guard texts, as the user would write them."""

from __future__ import annotations

import re
from functools import lru_cache

#: A path of names, attributes, items and calls, as in `L['self'].layers[0].weight.size()[1]`.
PATH = (
    r"(?:[\w.]|\[(?:b?'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|[^\]'\"\[]*)\]"
    r"|\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\))+"
)
#: A source as torch writes it, without calls: it starts in the locals (L) or globals (G).
SCOPED = re.compile(r"[LG]\['(?:[^'\\]|\\.)*'\](?:\.\w+|\[[^\]]*\]|\(\))*")
_ENVIRON = re.compile(r"\bos\.environ\._data\[b('(?:[^'\\]|\\.)*')\]")
_KEY = r"'((?:[^'\\]|\\.)*)'"
_MODULE_DICTS = re.compile(rf"\.(?:_modules|_parameters|_buffers|__dict__)\[{_KEY}\]")
_LOCAL = re.compile(rf"\bL\[{_KEY}\]")
_GLOBAL = re.compile(rf"\bG\[{_KEY}\]")
_BUILTIN = re.compile(rf"\bG\['__builtins_dict___\d+'\]\[{_KEY}\]")
_GETITEM = re.compile(r"\b(?:dict|list|tuple)\.__getitem__\(([^(),]+), ([^(),]+)\)")
#: Items that Dynamo reads with a function of its own.
_ITEM = re.compile(r"\b___(?:odict|set|tuple_iterator)_getitem\(([^(),]+), ([^(),]+)\)")
_DICT_KEYS = re.compile(r"\bdict\.keys\(([^()]+)\)")
_GETATTR = re.compile(rf"\b(?:getattr|object\.__getattribute__)\(([^(),]+), {_KEY}\)")
_WRAPPED = re.compile(
    r"\b___(?:from_numpy|as_tensor|unwrap_async_collective_tensor|list_reverseiterator_backing_list)"
    r"\(([^()]+)\)(?:\.item\(\))?"
)
_NAMED_FIELDS = re.compile(r"\b___namedtuple_fields\(([^()]+)\)")
_DATACLASS_FIELDS = re.compile(r"\b___dataclass_fields\(([^()]+)\)")
_MODE = re.compile(r"\b___get_torch_function_mode_stack_at\((\d+)\)")
_STREAM = re.compile(r"\b___get_current_stream\(torch\.device\('?(\w+)'?(?:, (\w+))?\)\)")
#: Functions of Dynamo in its sources, and the same as the user would write it.
_PLAIN = (
    (_GETITEM, r"\1[\2]"),
    (_ITEM, r"\1[\2]"),
    (_DICT_KEYS, r"\1.keys()"),
    (_GETATTR, r"\1.\2"),
    (_WRAPPED, r"\1"),
    (_NAMED_FIELDS, r"\1._fields"),
    (_DATACLASS_FIELDS, r"dataclasses.fields(\1)"),
    (_MODE, r"torch_function_mode_stack[\1]"),
    (_STREAM, r"torch.\1.current_stream(\2)"),
    (_ENVIRON, r"os.environ[\1]"),
)
_CLASS = re.compile(r"<(?:class|enum|flag) '([^']*)'>")
_BACKENDS = {"CPU", "CUDA", "Meta", "XPU", "MPS", "HPU", "XLA", "IPU", "VE", "Lazy", "MTIA", "MAIA", "PrivateUse1"}
_SCALARS = {
    "Byte": "uint8",
    "Char": "int8",
    "Short": "int16",
    "Int": "int32",
    "Long": "int64",
    "Half": "float16",
    "Float": "float32",
    "Double": "float64",
    "ComplexHalf": "complex32",
    "ComplexFloat": "complex64",
    "ComplexDouble": "complex128",
}


@lru_cache(maxsize=8192)
def format_source(source: str) -> str:
    """Format a guard's source as the user would write it: `L['self']._modules['lin'].weight` -> `self.lin.weight`."""
    text = _BUILTIN.sub(r"\1", source)
    text = _LOCAL.sub(r"\1", text)
    text = _GLOBAL.sub(_format_global, text)
    for pattern, plain in _PLAIN:
        text = pattern.sub(plain, text)
    return _MODULE_DICTS.sub(_format_member, text).strip()


def _format_global(match: re.Match[str]) -> str:
    # Dynamo imports modules for its own use as `__import_torch_dot_nn_dot_functional`.
    name = match[1]
    return name.removeprefix("__import_").replace("_dot_", ".") if name.startswith("__import_") else name


def _format_member(match: re.Match[str]) -> str:
    key = match[1]
    if key.isidentifier():
        return f".{key}"
    return f"[{key}]" if key.isdigit() else f"[{key!r}]"


def parse_class_name(text: str, module: bool = False) -> str | None:
    """Return the class in `<class 'torch.nn.Linear'>`: `Linear`, or with `module` the whole path; None without one."""
    found = _CLASS.search(text)
    if not found:
        return None
    return found[1] if module else found[1].rpartition(".")[2]


def format_dtype(scalar_type: str) -> str:
    """Format the C++ name of a scalar type as a torch.dtype: `Float` -> `torch.float32`."""
    return "torch." + _SCALARS.get(scalar_type, scalar_type[:1].lower() + scalar_type[1:].replace("Float", "float"))


def compare_dispatch_keys(expected: str, actual: str) -> tuple[bool, str, str]:
    """Return the difference between two lists of dispatch keys: (is it the device?, expected, actual).

    Two devices differ in their backend key. Otherwise the result has the keys that differ.
    """
    old, new = (list(dict.fromkeys(k.strip() for k in keys.split(","))) for keys in (expected, actual))
    old_device, new_device = ([k.lower() for k in keys if k in _BACKENDS] for keys in (old, new))
    if old_device and new_device and old_device != new_device:
        return True, ", ".join(old_device), ", ".join(new_device)
    only_old = ", ".join(k for k in old if k not in new)
    only_new = ", ".join(k for k in new if k not in old)
    return False, only_old or f"without {only_new}", only_new or f"without {only_old}"
