"""describe(): exact for plain values, bounded for long ones, and deaf to what classes say of themselves."""

from __future__ import annotations

import collections
import enum
import types

import pytest

from compilediag.sources.guards.read_values import MAX_CHARS, describe, type_name


class Colour(enum.Enum):
    RED = 1


class Level(enum.IntFlag):
    LOW = 1
    HIGH = 2


def function(x):
    return x


@pytest.mark.parametrize(
    "value",
    [None, True, 0, -7, 1.5, float("inf"), 2 + 3j, "text", "", b"bytes", ..., (), [], {}, set(), (1,), [1, "a"]],
    ids=repr,
)
def test_plain_values_are_described_exactly(value):
    assert describe(value) == repr(value)


@pytest.mark.parametrize(
    ("value", "details"),
    [
        (slice(1, None), "slice(1, None, None)"),
        (range(0, 9, 2), "range(0, 9, 2)"),
        (frozenset([1]), "frozenset({1})"),
        ({"a": [1, [2, [3]]]}, "{'a': [1, [2 items]]}"),
        ([[1, [2]], [3]], "[[1, [1 items]], [3]]"),
        (list(range(100)), "[0, 1, 2, 3, 4, 5, ... 100 items]"),
        (Colour.RED, "Colour.RED"),
        (Level.LOW, "Level.LOW"),
        (Colour, f"<class {__name__}.Colour>"),
        (int, "<class int>"),
        (len, "<builtin len>"),
        ([].append, "<builtin list.append>"),
        (types, "<module types>"),
        (1 << 40_000, "<int of 40001 bits>"),
        (object(), "<object object>"),
        (collections.OrderedDict(a=1), "<collections.OrderedDict object>"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_other_values_are_described_within_limits(value, details):
    assert describe(value) == details


def test_functions_are_described_by_name_and_line():
    line = function.__code__.co_firstlineno
    assert describe(function) == f"function at test_values.py:{line}"
    assert describe(lambda: 0).startswith("<lambda> at test_values.py:")
    assert describe(Hostile.method.__get__(Hostile())).startswith("Hostile.method at test_values.py:")


@pytest.mark.parametrize(
    "value",
    ["x" * 10**6, b"x" * 10**6, ["x" * 150] * 6, {"k" * 150: "v" * 150}, [[10**150] * 9]],
    ids=lambda value: type(value).__name__,
)
def test_long_values_are_cut(value):
    assert len(describe(value)) <= MAX_CHARS


class Meta(type):
    """A class of classes that lies, raises and prints whenever it is asked."""

    def __getattribute__(cls, name):
        raise AssertionError(f"metaclass asked for {name}")

    def __repr__(cls):
        raise AssertionError("metaclass asked for its repr")

    def __instancecheck__(cls, value):
        raise AssertionError("asked for isinstance")

    def __eq__(cls, other):
        raise AssertionError("metaclass asked for ==")

    __hash__ = type.__hash__


def _raise(*args, **kwargs):
    raise AssertionError("the value's own code ran")


HOSTILE = {
    f"__{name}__": _raise
    for name in [
        *("repr", "str", "format", "eq", "ne", "hash", "len", "bool", "iter", "contains", "getitem"),
        *("getattr", "getattribute", "int", "index", "float", "dir", "fspath"),
    ]
}


class Hostile:
    def method(self):
        return 1

    locals().update({name: body for name, body in HOSTILE.items() if name not in ("__getattribute__",)})
    shape = property(_raise)
    __class__ = property(_raise)


@pytest.mark.parametrize("base", [object, int, str, list, dict, tuple, float, BaseException], ids=lambda c: c.__name__)
def test_no_code_of_the_value_runs(base):
    members = dict(HOSTILE, shape=property(_raise), dtype=property(_raise), __class__=property(_raise))
    cls = type("Hostile", (base,), members)
    assert describe(cls()) == f"<{__name__}.Hostile object>"
    assert describe([cls()]) == f"[<{__name__}.Hostile object>]"
    assert describe({"k": cls()}) == f"{{'k': <{__name__}.Hostile object>}}"


def test_no_code_of_a_key_runs():
    class Key:
        armed = False

        def __hash__(self):
            return _raise() if self.armed else 1

    keyed = {Key(): 1}
    Key.armed = True
    assert describe(keyed) == f"{{<{__name__}.Key object>: 1}}"
    assert describe(set()) == "set()"


def test_no_code_of_the_metaclass_runs():
    cls = Meta("Odd", (), {})
    assert describe(cls()) == f"<{__name__}.Odd object>"
    assert describe(cls) == f"<class {__name__}.Odd>"
    assert type_name(cls) == "Odd"


def test_a_class_with_a_strange_module_is_described_by_its_name():
    cls = type("Odd", (), {"__module__": property(_raise)})
    assert describe(cls()) == "<Odd object>"


def test_large_values_are_described_in_a_few_words():
    values = [list(range(10**6)), {i: i for i in range(10**5)}, "x" * 10**7, 10**100_000, set(range(10**5))]
    assert all(len(describe(value)) < 300 for value in values)
