"""A program whose data tries to be code: keys, names and values that look like guards, in the places where torch's
guards quote them. `python -m tests.live.hostile_data MODE FOLDER` runs every case and writes what happened.

MODE is `none` (nothing watches; TORCH_TRACE may be set), `lean` or `full`.
"""

from __future__ import annotations

import builtins
import collections
import enum
import json
import os
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

#: What ran although nobody called it: the form of each payload that was executed.
EXECUTED: list[str] = []


class Answer(int):
    """What a payload gives: it has what a shape guard asks of a tensor, so that an evaluation does not end early."""

    def size(self):
        return [self]

    stride = size


class Trap:
    """An object of the program. Each way to read from it is one that only the program may use."""

    def note(self, *_):
        EXECUTED.append("TRAP")
        return Answer()

    boom = property(note)
    size = __len__ = __getitem__ = __iter__ = __contains__ = __call__ = note


def canary(*_: object) -> Answer:
    EXECUTED.append("CANARY")
    return Answer()


TRAP = Trap()

#: Expressions that leave a trace in EXECUTED if anything evaluates them, or walks them as a path.
EXPRESSIONS = (
    "CANARY()",
    "G['TRAP'].boom",
    '__import__("builtins").CANARY()',
    "__import__('builtins').CANARY()",
    "eval('CANARY()')",
    'exec("CANARY()")',
    'G["TRAP"].boom',
    "G['TRAP']['boom']",
    "(lambda: CANARY())()",
    "[CANARY() for _ in '1'][0]",
    "print(CANARY(), end='')",
    "dict.__getitem__(G, 'TRAP').boom",
    "len(G['TRAP'])",
)

#: Texts around such an expression, which end a string, a comment or an argument where a reader is not exact.
TEMPLATES = (
    "a'] == {}.size()[0]",
    'a"] == {}.size()[0]',
    "a'] == {}.size()[0], L['x",
    "{}",
    "{}.size()[0]",
    "{}.size()[0] == 3",
    "L['x'].size()[0] + {}.size()[0] == 3",
    "']) or {} or (L['",
    '"]) or {} or (L["',
    "\\'] == {}.size()[0]",
    "\\\\'] == {}.size()[0]",
    "\\",
    "a\n{}.size()[0] #",
    "a\r{}.size()[0]\r#",
    "\u2028{}.size()[0]\x0c\x00\x1b[31m",
    "#'\r\"ids\"]\r-[{}][\"'\"",
    "(y := {}.size()[0])",
    "{{{}}}{0}{0.__class__}%s%(a)s$x",
    "not {}",
    "{} is None",
    "{} is L['x']",
    "L['x'] is {}",
    "), {}, (",
    ", {}, ",
    "'), {}, ('",
    "], non_overlapping=[{}], [",
    "hasattr({}, 'a')",
    "___check_obj_id({}, 7), type=<class '{}'>",
    "KeyError on {}",
    "tensor '{}' size mismatch at index 0. expected 2, actual 3",
    "Duplicate tensors found: ['{}']",
    "a'  # {}.size()[0]  # train.py:5 in f",
    "a  # {}.size()[0]  # train.py:5 in f",
    "\nUser stack trace:\n  File \"train.py\", line 5, in f\n    {}",
    "0/1: L['x'] == {}",
    "a (HINT: guard on \"{}\")",
    "._modules['{}'].__dict__['{}']",
    "__import_{}_dot_b",
    "a'] == {}.size()[0] " + "w" * 800,
    "'" * 5 + '"' * 4 + "{}",
    "ä'] == {}.size()[0] \U0001f600",
)  # fmt: skip


def make_text(number: int) -> str:
    """The text of one template; which expression is in it goes around."""
    template = TEMPLATES[number % len(TEMPLATES)]
    expression = EXPRESSIONS[(number + number // len(TEMPLATES)) % len(EXPRESSIONS)]
    return template.replace("{}", expression)


def as_bytes(text: str) -> bytes:
    return text.encode()


def as_tuple(text: str) -> tuple[object, ...]:
    return text, 1


def as_nested(text: str) -> tuple[object, ...]:
    return (text, (None, (text.encode(), True))), -1.5


def as_frozenset(text: str) -> frozenset[object]:
    return frozenset({text})


WRAPPERS = {"str": str, "bytes": as_bytes, "tuple": as_tuple, "nested": as_nested, "frozenset": as_frozenset}
STRINGS = ("str",)


class Holder:
    """An object whose attributes have any names."""


class Color(enum.Enum):
    RED = 1
    BLUE = 2


ONE, OTHER = Holder(), Holder()


class Shape(NamedTuple):
    """A way in which a program uses a key. `make` gives the function and the arguments of each call; `allow` makes a
    key of any text that can be one here.
    """

    make: Callable[[Any], tuple[Any, list[Any]]]
    kinds: tuple[str, ...]
    allow: Callable[[str], str]


SHAPES: dict[str, Shape] = {}


def shape(kinds: tuple[str, ...] = tuple(WRAPPERS), allow: Callable[[str], str] = str) -> Any:
    def add(make: Any) -> Any:
        SHAPES[make.__name__] = Shape(make, kinds, allow)
        return make

    return add


def without_dots(text: str) -> str:
    """torch raises an error for attributes, and for modules and buffers, whose names have dots."""
    return text.replace(".", "") or "b"


def without_zeros(text: str) -> str:
    return text.replace("\0", "")


def in_environment(text: str) -> str:
    return "CD_" + without_zeros(text).replace("=", "_")[:900]


def on_one_line(text: str) -> str:
    return "".join(c for c in text if c.isprintable())


def ones(*sizes: int) -> Any:
    import torch

    return torch.ones(*sizes or (2,))


def each_value(*values: object) -> Callable[[Any], list[Any]]:
    """Calls with a dictionary that has the key, with each of these values."""
    return lambda key: [(ones(), {key: value}) for value in values]


#: Shapes with functions of one expression: name -> (the function for a key, the arguments of its calls).
SIMPLE: dict[str, tuple[Callable[[Any], Any], Callable[[Any], list[Any]]]] = {
    "contains": (
        lambda key: lambda x, d, k: x + (1 if "k" in d[k] else 2),
        lambda key: [(ones(), {key: {"k": 1}}, key), (ones(), {key: {}}, key)],
    ),
    "item": (lambda key: lambda x, d: x * d[key], each_value(True, False)),
    "is_in": (
        lambda key: lambda x, d: x + 1 if key in d else x + 2,
        lambda key: [(ones(), {key: 1}), (ones(), {"other": 1})],
    ),
    "nested": (
        lambda key: lambda x, d: x * d[key][key]["v"],
        lambda key: [(ones(), {key: {key: {"v": v}}}) for v in (True, False)],
    ),
    # The second value makes the number dynamic, the fourth fails a guard on its range.
    "number": (lambda key: lambda x, d: x + 1 if d[key] < 9 else x + 2, each_value(3, 4, 5, 20)),
    "kind_of_value": (lambda key: lambda x, d: x * len(d[key]), each_value([1], (1, 2), [1, 2, 3])),
    "tensor_size": (
        lambda key: lambda x, d: x + d[key].sum(),
        lambda key: [(ones(), {key: value}) for value in (ones(3), ones(4), ones(3).double())],
    ),
    "sizes_of_two": (
        lambda key: lambda x, d: x + 1 if d[key].size(0) > x.size(0) else x + 2,
        lambda key: [(ones(n), {key: ones(m)}) for n, m in ((3, 4), (5, 6), (7, 2), (8, 9))],
    ),
    "same_object": (
        lambda key: lambda x, d: x + 1 if d[key] is d["y"] else x + 2,
        lambda key: [(ones(), {key: ONE, "y": value}) for value in (ONE, OTHER)],
    ),
    "none": (lambda key: lambda x, d: x + 1 if d[key] is None else x + 2, each_value(None, Color.RED, Color.BLUE)),
    "listed_keys": (
        lambda key: lambda x, d: x + len(list(d.keys())) + (1 if next(iter(d)) == key else 2),
        lambda key: [(ones(), collections.OrderedDict(d)) for d in ({key: True, "b": True}, {"b": True})],
    ),
    "ordered": (
        lambda key: lambda x, d: x * d[key] + d["b"],
        lambda key: [(ones(), collections.OrderedDict({"b": True, key: v})) for v in (True, False)],
    ),
    "with_default": (
        lambda key: lambda x, d: x * d[key],
        lambda key: [(ones(), collections.defaultdict(int, {key: v})) for v in (True, False)],
    ),
    "in_set": (
        lambda key: lambda x, s: x + 1 if key in s else x + 2,
        lambda key: [(ones(), {key, "b"}), (ones(), {"b"})],
    ),
    "compared": (
        lambda key: lambda x, k: x + 1 if k == key else x + 2,
        lambda key: [(ones(), key), (ones(), type(key)())],
    ),
    "default_argument": (
        lambda key: lambda x, d, k=key: x * d[k] if k in d else x,
        lambda key: [(ones(), d) for d in ({key: True}, {key: False}, {})],
    ),
}
for _name, (_function, _calls) in SIMPLE.items():
    SHAPES[_name] = Shape(lambda key, f=_function, calls=_calls: (f(key), calls(key)), tuple(WRAPPERS), str)


@shape()
def same_tensor(key):
    def f(x, d):
        return x + d[key] + d["y"]

    one, other = ones(), ones() * 3
    return f, [(ones(), {key: one, "y": other}), (ones(), {key: one, "y": one})]


@shape()
def overlapping(key):
    def f(d):
        d[key].add_(1)
        return d[key] + d["y"] * 2 + d["z"]

    base = ones(9)
    calls = [({key: base[0:3], "y": base[s : s + 3], "z": base[6:9]},) for s in (1, 3)]
    return f, calls


@shape()
def loop(key):
    def f(x, d):
        for k, v in d.items():
            x = x + v + (1 if k == key else 2)
        return x

    return f, [(ones(), {key: True}), (ones(), {"b": True}), (ones(), {key: True, "b": False})]


@shape()
def closure(key):
    values = {key: True}

    def f(x, n):
        return x * values[key] + n

    def change():
        values[key] = False
        return ones(), 1

    return f, [(ones(), 1), change]


@shape()
def in_globals(key):
    def f(x):
        return x * G_VALUES[key]  # noqa: F821  (the function gets globals of its own)

    values = {"G_VALUES": {key: True}, "TRAP": TRAP, "__builtins__": builtins}

    def change():
        values["G_VALUES"] = {key: False}
        return (ones(),)

    return types.FunctionType(f.__code__, values, "f", None, f.__closure__), [(ones(),), change]


@shape(STRINGS)
def global_name(key):
    """A global whose name is a payload, read through `globals()`."""

    def f(x):
        return x * globals()[key]

    values: dict[str, object] = {key: True, "TRAP": TRAP, "__builtins__": builtins}

    def change():
        values[key] = False
        return (ones(),)

    return types.FunctionType(f.__code__, values, "f", None, f.__closure__), [(ones(),), change]


@shape(STRINGS, without_dots)
def attribute(key):
    def f(x, o):
        return x * getattr(o, key)

    calls = []
    for value in (True, False, "missing"):
        holder = Holder()
        setattr(holder, key, value) if value != "missing" else setattr(holder, "b", 1)
        calls.append((ones(), holder))
    return f, calls[:2]


@shape(STRINGS, without_dots)
def has_attribute(key):
    def f(x, o):
        return x + 1 if hasattr(o, key) else x + 2

    holder = Holder()
    setattr(holder, key, 1)
    return f, [(ones(), Holder()), (ones(), holder)]


@shape(STRINGS)
def keyword(key):
    def f(x, **kwargs):
        return x * kwargs[key]

    return f, [((ones(),), {key: True}), ((ones(),), {key: False})]


@shape(STRINGS, without_dots)
def buffer(key):
    import torch

    class Net(torch.nn.Module):
        def forward(self, x):
            return x + self._buffers[key].sum()

    nets = []
    for n in (2, 3):
        net = Net()
        net.register_buffer(key, ones(n))
        nets.append(net)
    code = Net.forward

    def f(x, net):
        return code(net, x)

    return f, [(ones(), net) for net in nets]


@shape(STRINGS, without_dots)
def named_module(key):
    import torch

    def f(x, modules):
        return x + modules[key].p

    def make(requires):
        inner = torch.nn.ReLU().requires_grad_(requires)
        inner.p = requires
        return torch.nn.ModuleDict({key: inner})

    return f, [(ones(), make(True)), (ones(), make(False))]


@shape(STRINGS, in_environment)
def environment(key):
    def f(x):
        return x + 1 if os.environ[key] == "1" else x + 2

    def set_to(value):
        def call():
            os.environ[key] = value
            return (ones(),)

        return call

    return f, [set_to("1"), set_to("2")]


@shape(STRINGS, without_zeros)
def class_name(key):
    def f(x, o):
        return x + o.n

    def make():
        cls = type(key, (), {"n": 1, "__module__": "m"})
        return cls()

    return f, [(ones(), make()), (ones(), make())]


@shape(STRINGS, without_zeros)
def function_name(key):
    """The names that the code object has: of the function, and of its file."""

    def f(x, n):
        return x * n

    code = f.__code__.replace(co_filename=f"/srv/{key[:200]}.py")
    return types.FunctionType(code, f.__globals__, key, None, f.__closure__), [(ones(), True), (ones(), False)]


@shape(STRINGS, on_one_line)
def source_line(key):
    """A line of the program that ends in a hostile comment, which torch quotes in its guards."""
    import linecache

    file = f"/srv/hostile_{len(linecache.cache)}.py"
    source = f"def f(x, n):\n    return x * n  # {key}\n"
    linecache.cache[file] = (len(source), None, source.splitlines(True), file)
    names: dict[str, Any] = {"TRAP": TRAP, "__builtins__": builtins}
    exec(compile(source, file, "exec"), names)
    return names["f"], [(ones(), True), (ones(), False)]


@shape(STRINGS)
def argument_name(key):
    """`**kwargs` of a compiled function that hands them on."""

    def g(x, **kwargs):
        return x * sum(kwargs.values())

    def f(x, d):
        return g(x, **d)

    return f, [(ones(), {key: True}), (ones(), {key: False})]


#: Shapes that read several keys of one dict; all of their guards fail in one recompile.
MANY = ("contains", "item", "tensor_size", "number")
#: Keys in one such program: a recompile describes failing guards for 50 ms only.
CHUNK = 10


def read_many(name: str, keys: list[Any]) -> tuple[Any, list[Any]]:
    """As the shape `name`, for several keys."""

    def contains(x, d):
        for k in keys:
            x = x + (1 if "k" in d[k] else 2)
        return x

    def item(x, d):
        for k in keys:
            x = x * d[k]
        return x

    def tensor_size(x, d):
        for k in keys:
            x = x + d[k].sum()
        return x

    def number(x, d):
        for k in keys:
            x = x + 1 if d[k] < 9 else x + 2
        return x

    values = {
        "contains": (contains, lambda: {"k": 1}, dict),
        "item": (item, lambda: True, lambda: False),
        "tensor_size": (tensor_size, lambda: ones(3), lambda: ones(4)),
        "number": (number, lambda: 3, lambda: 20),
    }
    function, *makers = values[name]
    return function, [(ones(), {key: make() for key in keys}) for make in makers]


class Case(NamedTuple):
    shape: str
    keys: list[Any]

    def make(self) -> tuple[Any, list[Any]]:
        if len(self.keys) > 1:
            return read_many(self.shape, self.keys)
        return SHAPES[self.shape].make(self.keys[0])


def make_cases(each: int) -> dict[str, Case]:
    """Name of a case -> the case. `SHAPE-plain` has a harmless key; `each` others of the shape have one payload.
    Besides there are cases with several payloads, which together have every template, and the keys of hypothesis.
    """
    cases: dict[str, Case] = {}
    for place, (name, (_, kinds, allow)) in enumerate(SHAPES.items()):
        cases[f"{name}-plain"] = Case(name, [allow("plain")])
        for at in range(each):
            number = place * 7 + at * 11
            key = WRAPPERS[kinds[(place + at) % len(kinds)]](allow(make_text(number)))
            cases[f"{name}-{at}"] = Case(name, [key])
    wrappers = list(WRAPPERS.values())
    keys = [wrappers[n % len(wrappers)](make_text(n)) for n in range(2 * len(TEMPLATES))] + generate_keys()
    for at in range(0, len(keys), CHUNK):
        name = MANY[at // CHUNK % len(MANY)]
        cases[f"{name}-many{at}"] = Case(name, list(dict.fromkeys(keys[at : at + CHUNK])))
    return cases


def generate_keys() -> list[object]:
    """Keys that hypothesis makes of the parts of the payloads, always the same."""
    from hypothesis import Phase, given, settings
    from hypothesis import strategies as st

    part = st.sampled_from([*EXPRESSIONS, "'", '"', "\\", "\n", "\r", "{", "}", "[", "]", "(", ")", "#", " == ", ", "])
    text = st.lists(part | st.text(max_size=3), max_size=9).map("".join)
    # torch reads a part of its texts as UTF-8, which has no lone surrogates.
    text = text.filter(lambda t: t.isascii() or not any("\ud800" <= c <= "\udfff" for c in t))
    keys = text | text.map(as_bytes) | text.map(as_tuple) | text.map(as_frozenset)
    found: dict[object, None] = {}

    @settings(derandomize=True, database=None, deadline=None, max_examples=120, phases=[Phase.generate])
    @given(keys)
    def collect(key: object) -> None:
        found[key] = None

    collect()
    return list(found)


def call_all(function: Any, calls: list[Any]) -> list[object]:
    """What each call gives: the numbers of its tensor, or the name of its exception."""
    results: list[object] = []
    for call in calls:
        args = call() if callable(call) else call
        args, kwargs = args if len(args) == 2 and isinstance(args[1], dict) and type(args[0]) is tuple else (args, {})
        try:
            results.append(function(*args, **kwargs).tolist())
        except Exception as error:
            results.append(type(error).__name__)
    return results


def run_case(name: str, case: Case) -> dict[str, object]:
    """What the calls of a case gave, how many graphs torch counted, and what was executed meanwhile."""
    import torch
    from torch._dynamo.utils import counters

    function, calls = case.make()
    if case.shape != "function_name":
        function.__code__ = function.__code__.replace(co_name=name)
    before, ran = counters["stats"]["unique_graphs"], len(EXECUTED)
    results = call_all(torch.compile(function, backend="eager", dynamic=None), calls)
    graphs = counters["stats"]["unique_graphs"] - before
    return {"results": results, "graphs": graphs, "executed": EXECUTED[ran:]}


def main(mode: str, folder: Path, each: int) -> None:
    builtins.CANARY = canary  # type: ignore[attr-defined]
    import torch

    torch._dynamo.config.recompile_limit = 64
    cases = make_cases(each)
    if mode == "none":
        results = {name: run_case(name, case) for name, case in cases.items()}
    else:
        import compilediag as cd

        with cd.watch(folder / f"{mode}.cdiag", detail=mode) as session:  # type: ignore[arg-type]
            results = {name: run_case(name, case) for name, case in cases.items()}
        session.summary()
    # The writer's thread has ended by now: what it executed is no case's.
    (folder / f"{mode}.json").write_text(json.dumps({"cases": results, "executed": EXECUTED}))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]))
