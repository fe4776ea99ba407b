"""Identical blocks of one graph: modules of one class that make the same calls on the same sizes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

#: A module around a call, as torch writes it: its path in the program, and its class.
Module = tuple[str, Any]
#: A call of a graph: the modules around it, outermost first, and what makes two calls the same.
ModuleOp = tuple[tuple[Module, ...], tuple[object, ...]]

#: So many identical blocks are worth a note, if each has so many calls.
MIN_BLOCKS = 3
MIN_OPS = 4


def find_repeated_blocks(ops: Iterable[ModuleOp]) -> dict[str, Any] | None:
    """The class of modules whose identical copies make up most of a graph; None without `MIN_BLOCKS` of one class.

    Returns class (its qualified name), module (where it is defined), path (of the first block), count (of blocks), ops
    (calls of each) and graph_ops (calls of the graph).
    """
    calls: dict[str, list[tuple[object, ...]]] = defaultdict(list)
    classes: dict[str, Any] = {}
    total = 0
    for modules, call in ops:
        total += 1
        for path, cls in modules:
            calls[path].append(call)
            classes[path] = cls
    alike: dict[tuple[Any, ...], list[str]] = defaultdict(list)
    for path, made in calls.items():
        if len(made) >= MIN_OPS:
            alike[classes[path], tuple(made)].append(path)
    groups = [(paths, len(made)) for (_, made), paths in alike.items() if len(paths) >= MIN_BLOCKS]
    if not groups:
        return None
    paths, size = max(groups, key=lambda group: (len(group[0]) - 1) * group[1])
    return {**_describe(classes[paths[0]], paths[0]), "count": len(paths), "ops": size, "graph_ops": total}


def _describe(cls: Any, path: str) -> dict[str, Any]:
    name = getattr(cls, "__qualname__", None) or str(cls)
    return {"class": name, "module": getattr(cls, "__module__", None), "path": path}
