"""C++'s names of classes, scalar types and dispatch keys, as Python writes them."""

from __future__ import annotations

import re

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
