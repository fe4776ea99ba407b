"""torch's own names of guarded values, for its settings."""

from __future__ import annotations

import re
from functools import lru_cache

from ...decode.guards.guard_text import parse_guard
from ...decode.guards.path import Path, name_any_instance

_REPEATED_GROUP = re.compile(r"\)[*+{?]")
#: A pattern for names of values has no more of `*` and the like.
MAX_REPEATS = 3
_DIM = re.compile(r"(.+):(\d{1,3})$")


def split_property(source: str) -> tuple[str, str | None, int | None]:
    """`x.size()[0]` -> ("x", "size", 0); `x.dtype` -> ("x", "dtype", None); `self.n` -> ("self.n", None, None)."""
    path = Path.of(source)
    return path.owner.text, path.tensor_property, path.dim


def is_size(source: str) -> bool:
    """True for the size of a tensor's dimension."""
    return Path.of(source).is_size


def is_stack_value(source: str) -> bool:
    """True for a value that Dynamo passed to the code after a graph break: the user's code has no name for it."""
    return Path.of(source).is_stack_value


normalize_source = name_any_instance


@lru_cache(maxsize=4096)
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


def find_listed(setting: str, name: str, dim: int | None) -> str | None:
    """Find the entry of `dynamic_sources` or `static_sources` that names a value, as torch does; None without one.

    An entry is torch's name or a pattern that the name begins with; `:1` after it restricts it to one dimension.
    """
    for entry in filter(None, setting.replace(" ", "").split(",")):
        path, dims = (found[1], found[2]) if (found := _DIM.match(entry)) else (entry, None)
        if (dims is None or dim is None or int(dims) == dim) and (path == name or _begins_with(path, name)):
            return entry
    return None


def _begins_with(pattern: str, name: str) -> bool:
    # A repeated group can take exponential time, and the pattern may come from somebody else.
    if _REPEATED_GROUP.search(pattern) or sum(map(pattern.count, "*+{?")) > MAX_REPEATS:
        return False
    try:
        return re.match(pattern, name) is not None
    except re.error:
        return False
