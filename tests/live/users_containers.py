"""Programs whose containers count the calls of their own methods. `python -m tests.live.users_containers MODE` prints
the calls of each program: with MODE `none` nothing watches, else a session with that detail does.
"""

from __future__ import annotations

import collections
import collections.abc
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import torch

CALLS: collections.Counter[str] = collections.Counter()
#: Methods that a program may run a number of times of its own, and nobody else at all.
METHODS = (
    *("__len__", "__getitem__", "__iter__", "__contains__", "__eq__", "__ne__", "__hash__", "__repr__", "__str__"),
    *("__bool__", "__getattribute__", "__missing__", "keys", "values", "items", "get", "__reversed__", "__dir__"),
    *("__format__", "__sizeof__", "__reduce_ex__", "__length_hint__", "__index__", "__int__", "__float__"),
)


def counted(base: type, *left_out: str, **more: Any) -> Any:
    """A subclass that counts the calls of each method that it inherits."""

    def count(name: str, inherited: Any) -> Any:
        def method(self, *args, **kwargs):
            CALLS[name] += 1
            return inherited(self, *args, **kwargs)

        return method

    own = {m: count(m, getattr(base, m)) for m in METHODS if m not in left_out and callable(getattr(base, m, None))}
    return type(f"Counted{base.__name__}", (base,), {**own, **more})


class OwnMapping(collections.abc.Mapping):
    """A mapping that is no dict."""

    def __init__(self, values):
        self.values_ = dict(values)

    def __getitem__(self, key):
        return self.values_[key]

    def __len__(self):
        return len(self.values_)

    def __iter__(self):
        return iter(self.values_)


class Plain:
    """An object with an attribute, a property and a fallback, each of which counts."""

    def __init__(self, n, length=2):
        self.n, self.length = n, length

    @property
    def twice(self):
        CALLS["property"] += 1
        return self.n * 2

    def __getattr__(self, name):
        CALLS["__getattr__"] += 1
        if name != "other":
            raise AttributeError(name)
        return self.n

    def __len__(self):
        CALLS["__len__"] += 1
        return self.length

    def __bool__(self):
        CALLS["__bool__"] += 1
        return self.length > 0

    def __eq__(self, other):
        CALLS["__eq__"] += 1
        return type(other) is Plain and self.n == other.n

    def __hash__(self):
        CALLS["__hash__"] += 1
        return 7

    def __repr__(self):
        CALLS["__repr__"] += 1
        return "Plain"


#: Dynamo traces the methods that a program overrides; those that it cannot trace are left as they are.
NO_ACCESS = ("__getattribute__", "__reduce_ex__", "__format__", "__sizeof__", "__dir__")


def loop(x, d):
    for k in d:
        x = x + d[k]
    return x


def total(x, items):
    for value in items:
        x = x + value
    return x


def module_list(x, net):
    for part in net:
        x = part(x) + part.p
    return x


def module_dict(x, net):
    for name in net:
        x = x + net[name].p
    return x


FUNCTIONS: dict[str, Any] = {
    "item": lambda x, d: x * d["k"],
    "contains": lambda x, d: x + 1 if "k" in d else x + 2,
    "length": lambda x, d: x + len(d),
    "loop": loop,
    "first": lambda x, items: x * items[0],
    "total": total,
    "attribute": lambda x, o: x * o.n,
    "computed": lambda x, o: x * o.twice,
    "fallback": lambda x, o: x * o.other,
    "truth": lambda x, o: x + 1 if o else x + 2,
    "equality": lambda x, o: x + 1 if o == Plain(1) else x + 2,
    "in_items": lambda x, d: x * d["o"].n,
}


def mapped(function, make):
    """The calls of a function of a mapping, where a value, the keys and the type change."""
    changes = ({"k": True}, {"k": False}, {"k": True, "b": 1}, {"k": 2}, {"k": 3}, {"b": True})
    return function, [make(values) for values in changes], lambda: {"k": True}


def listed(function, make):
    return function, [make(values) for values in ([True], [False], [True, 2], [3, 4], [5], [])], lambda: [True]


def make_default(cls):
    return lambda values: cls(lambda: 5, values)


def make_missing(cls):
    """A dict that makes what it does not have."""

    class Making(cls):
        def __missing__(self, key):
            CALLS["__missing__"] += 1
            return 5

    return Making


def make_module(cls):
    def make(values):
        parts = []
        for value in values:
            part = torch.nn.ReLU()
            part.p = value
            parts.append(part)
        return cls(parts)

    return make


def make_modules_by_name(cls):
    def make(values):
        made = {}
        for name, value in values.items():
            made[name] = part = torch.nn.ReLU()
            part.p = value
        return cls(made)

    return make


def make_programs() -> dict[str, Any]:
    """Name -> (function, its arguments, one of another type)."""
    programs: dict[str, Any] = {}
    mappings = {
        "dict": counted(dict, *NO_ACCESS),
        "missing": make_missing(counted(dict, *NO_ACCESS)),
        "ordered": counted(collections.OrderedDict, *NO_ACCESS),
        "default": make_default(counted(collections.defaultdict, *NO_ACCESS)),
        "user": counted(collections.UserDict, *NO_ACCESS),
        "mapping": counted(OwnMapping, *NO_ACCESS),
    }
    for name, make in mappings.items():
        for function in ("item", "contains", "length", "loop"):
            programs[f"{name}-{function}"] = mapped(FUNCTIONS[function], make)
    for cls in (list, tuple, collections.UserList, collections.deque):
        for function in ("first", "length", "total"):
            programs[f"{cls.__name__}-{function}"] = listed(FUNCTIONS[function], counted(cls, *NO_ACCESS))
    for cls in (set, frozenset):
        made = counted(cls, *NO_ACCESS)
        for function in ("contains", "length"):
            programs[f"{cls.__name__}-{function}"] = mapped(FUNCTIONS[function], made)
    objects = [Plain(n, size) for n, size in ((1, 2), (2, 2), (2, 3), (3, 0), (4, 0))]
    for function in ("attribute", "computed", "fallback", "truth", "length", "equality"):
        programs[f"object-{function}"] = FUNCTIONS[function], objects, lambda: Plain(1, 1)
    watched = counted(Plain, *(m for m in METHODS if m != "__getattribute__"))
    programs["object-getattribute"] = FUNCTIONS["attribute"], [watched(n) for n in (1, 2, 3)], lambda: Plain(1)
    keyed = [{Plain(9): n, "k": n, "o": Plain(n)} for n in (True, False, 3, 4)]
    for function in ("item", "contains", "length", "in_items"):
        programs[f"keys-{function}"] = FUNCTIONS[function], keyed, lambda: {"k": True}
    modules = make_module(counted(torch.nn.ModuleList, *NO_ACCESS))
    programs["modules-loop"] = module_list, [modules(v) for v in ([1, 2], [1, 3], [1], [4, 5])], lambda: modules([1])
    by_name = make_modules_by_name(counted(torch.nn.ModuleDict, *NO_ACCESS))
    nets = [by_name(v) for v in ({"a": 1, "b": 2}, {"a": 1, "b": 3}, {"a": 1}, {"b": 4})]
    programs["named-loop"] = module_dict, nets, lambda: by_name({"c": 1})
    return programs


def run(name: str, function: Any, arguments: list[Any], make_other: Any) -> dict[str, object]:
    """What the calls of one program gave, and the calls of the user's methods meanwhile."""
    torch._dynamo.reset()
    CALLS.clear()
    compiled = torch.compile(function, backend="eager")
    results: list[object] = []
    for argument in (*arguments, make_other()):
        try:
            results.append(compiled(torch.ones(2), argument).tolist())
        except Exception as error:
            results.append(f"{type(error).__name__}")
    return {"results": results, "calls": dict(sorted(CALLS.items()))}


def main(mode: str) -> None:
    torch._dynamo.config.recompile_limit = 64
    programs = make_programs()
    if mode == "none":
        print(json.dumps({name: run(name, *program) for name, program in programs.items()}))
        return
    import compilediag as cd

    with tempfile.TemporaryDirectory() as folder:
        with cd.watch(Path(folder) / "x.cdiag", detail=mode) as session:  # type: ignore[arg-type]
            found: dict[str, Any] = {}
            for name, program in programs.items():
                found[name] = run(name, *program)
                session.flush()
                # What the writer's thread does of this program is over now.
                found[name]["calls"] = dict(sorted(CALLS.items()))
        assert len(session.recompiles) > len(programs)
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1])
