"""Which earlier key a missed key is compared with, in a log; tests/live/test_explain_miss.py has torch do it."""

import pytest

from .log_builder import compile_, event, read_log, start

#: The function of each compile id.
FUNCTIONS = {"0/0": "f", "1/0": "g"}


def look_up(key, outcome="miss", cache="fx_graph", compile_id="0/0", **parts):
    """A lookup; `fx_kwargs__a` is the component `fx_kwargs[a]`, and no parts are none."""
    names = {name: name.replace("__", "[") + "]" * ("__" in name) for name in parts}
    lines = [f"[{abs(hash((name, text))):x}] {names[name]}: {text}" for name, text in parts.items()]
    return event("i", f"{cache}_cache_{outcome}", compile_id=compile_id, args={"key": key, "components": lines})


def compare(folder, *lookups):
    """(nearest key, differences) of each lookup, None where no key was compared."""
    begin = "".join(start(compile_id=compile_id, function=name) for compile_id, name in FUNCTIONS.items())
    log = begin + "".join(lookups) + "".join(compile_(one, at=9, function=name) for one, name in FUNCTIONS.items())
    rows = read_log(folder, log).cache_lookups
    pairs = zip(rows["nearest_key"], rows["key_diff"], strict=True)
    return [(nearest, list(diff)) if isinstance(nearest, str) else None for nearest, diff in pairs]


A, B = look_up("k1", a="1"), look_up("k2", a="2")
NEAR, FAR = "a = x + 1\n b = a * 2", "c = x - 1\n d = c / 2"


@pytest.mark.parametrize(
    ("lookups", "last"),
    [
        ([A], None),
        (
            [
                look_up("far", a="9", b="9", c="9"),
                look_up("near", a="1", b="2", c="9"),
                look_up("far too", a="9", b="2", c="9"),
                look_up("now", a="1", b="2", c="3"),
            ],
            ("near", ["c: 9 -> 3"]),
        ),
        ([A, B, look_up("k3", a="3")], ("k2", ["a: 2 -> 3"])),
        (
            [
                look_up("near", gm=f"def f(x):\n {NEAR}\n return b"),
                look_up("far", gm=f"def f(x):\n {FAR}\n return d"),
                look_up("now", gm=f"def f(x):\n {NEAR.replace('* 2', '* 3')}\n return b"),
            ],
            ("near", ["graph line 3: b = a * 2 -> b = a * 3"]),
        ),
        ([A, look_up("k2", "hit", a="2")], None),
        ([A, look_up("k2", "hit", a="2"), look_up("k3", a="2", b="1")], ("k2", ["b: (absent) -> 1"])),
        ([A, B, A], ("k1", [])),
        ([A, look_up("k2")], None),
        ([A, look_up("k2", cache="autograd", a="2")], None),
        ([A, look_up("k2", compile_id="1/0", a="2")], None),
        ([A, look_up("k2", a="2", fx_kwargs__is_backward="True")], None),
        ([A, look_up("k2", compile_id="1/0", a="2"), look_up("k3", a="3")], ("k1", ["a: 1 -> 3"])),
        ([look_up("k0", a="0", b="0"), *(look_up(f"n{n}", a=str(n), b=str(n)) for n in range(1, 40)),
          look_up("now", a="0", b="x")], ("n39", ["a: 39 -> 0", "b: 39 -> x"])),
    ],
    ids=[
        *("first", "nearest", "the later of two", "lines in common", "hit", "after a hit", "the same again"),
        *("no components", "other cache", "other function", "other direction", "back again", "the oldest is forgotten"),
    ],
)  # fmt: skip
def test_a_miss_is_compared_with_the_nearest_earlier_key(tmp_path, lookups, last):
    assert compare(tmp_path, *lookups)[-1] == last


def test_a_guard_miss_is_no_matter_of_keys(tmp_path):
    missed = event("i", "fx_graph_cache_miss", args={"key": "k2", "cache_status_detailed": "guard_miss"})
    assert compare(tmp_path, A, missed) == [None, None]
