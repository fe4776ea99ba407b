"""Guard sources: what torch calls them, what users call them, and when two of them are the same place."""

from __future__ import annotations

import re

_PROPERTY = re.compile(r"\.(?:(size|stride)\(\)\[(\d+)\]|(dim|dtype|device|requires_grad|layout)(?:\(\))?)$")
_INSTANCE = re.compile(r"(?<=[\w\]])(?:\.\d+(?=\.|\[)|\[\d+\](?=\.(?!size\(|stride\()\w))")
_NAME = re.compile(r"[A-Za-z_]\w{0,99}")
#: A path of attributes and simple subscripts: nothing that `dynamic_sources` would read as more than a name.
_SIMPLE = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*|\[\d+\]|\['[\w.]+'\]|\[\"[\w.]+\"\])*")
_TORCH_TENSOR = re.compile(r"tensor '(?P<raw>.+?)' (?:size|stride|rank|dtype|requires_grad|dispatch|device)")
_TORCH_ROOT = re.compile(r"(?<![\w\]])[LG]\[(['\"])\w+\1\](?:\.\w+|\[(?:\d+|'[\w.]+'|\"[\w.]+\")\])*")


def split_property(source: str) -> tuple[str, str | None, int | None]:
    """`x.size()[0]` -> ("x", "size", 0); `x.dtype` -> ("x", "dtype", None); `self.n` -> ("self.n", None, None)."""
    found = _PROPERTY.search(source)
    if found is None:
        return source, None, None
    size, dim, name = found.groups()
    return source[: found.start()], size or name, int(dim) if dim is not None else None


def normalised(source: str) -> str:
    """The same for all instances of a repeated module: `self.layers[3].attn.n` -> `self.layers[*].attn.n`.

    An index right after the first name (`args[0].size()[0]`) tells inputs apart and stays.
    """
    root = _NAME.match(source)
    if root is None:
        return source
    rest = source[root.end() :]
    if not rest.startswith("."):
        return source
    return root.group() + _INSTANCE.sub(lambda m: "[*]" if m.group().startswith("[") else ".*", rest)


def root_name(source: str) -> str | None:
    found = _NAME.match(source)
    return found.group() if found else None


def torch_source(source: str, reason: str | None) -> str | None:
    """What torch calls the guarded thing, for `torch.compiler.config.dynamic_sources`; None if it isn't certain.

    torch's own text for the guard is asked first, since only it has globals (`G['n']`) and the dicts of
    modules (`self._buffers['b']`) that a user never writes. Else the user's name of a local is taken.
    """
    base = split_property(source)[0]
    return _from_reason(base, reason or "") or _local(base)


def _from_reason(base: str, reason: str) -> str | None:
    text = reason.split("  # ", 1)[0].split("\n", 1)[0]
    tensor = _TORCH_TENSOR.search(text)
    if tensor is not None and not tensor["raw"].startswith(("L[", "G[")):
        return _local(tensor["raw"])
    root = root_name(base)
    for found in _TORCH_ROOT.finditer(text):
        raw = split_property(found.group())[0].split(".size", 1)[0].split(".stride", 1)[0]
        if root is not None and re.match(rf"[LG]\[['\"]{root}['\"]\]", raw):
            return raw
    return None


def _local(path: str) -> str | None:
    if _SIMPLE.fullmatch(path) is None:
        return None
    root = _NAME.match(path)
    return f"L['{root.group()}']{path[root.end() :]}" if root else None
