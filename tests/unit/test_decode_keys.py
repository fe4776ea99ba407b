"""Which earlier key a missed key is compared with."""

import pytest

from compilediag.decode.cache_keys import (
    MAX_NOTED,
    MAX_SETTINGS,
    MAX_UNSAVED,
    REMEMBERED,
    KeyHistory,
    KeyOwner,
)
from compilediag.events import CacheLookup


def lines(parts):
    return [f"[{abs(hash((n, v))):x}] {n}: {v}" for n, v in parts.items()]


def looked_up(history, key, outcome="miss", cache="fx_graph", function="f", line=1, **parts):
    details = {"function": function, "file": None if function is None else "/model.py", "line": line}
    lookup = CacheLookup(time_ns=1, cache=cache, outcome=outcome, key=key, **details)
    return history.compare(
        lookup, lines({name.replace("__", "[") + "]" * ("__" in name): v for name, v in parts.items()})
    )


def test_the_first_key_has_nothing_to_differ_from():
    found = looked_up(KeyHistory(), "k1", a="1")
    assert (found.nearest_key, found.nearest_session, found.key_diff) == (None, None, None)


def test_a_miss_is_compared_with_the_nearest_earlier_key():
    history = KeyHistory()
    looked_up(history, "far", a="9", b="9", c="9")
    looked_up(history, "near", a="1", b="2", c="9")
    looked_up(history, "far too", a="9", b="2", c="9")
    found = looked_up(history, "now", a="1", b="2", c="3")
    assert (found.nearest_key, found.key_diff) == ("near", ["c: 9 -> 3"])


def test_of_two_that_are_as_near_the_later_one_counts():
    history = KeyHistory()
    looked_up(history, "first", a="1")
    looked_up(history, "second", a="2")
    assert looked_up(history, "now", a="3").nearest_key == "second"


def test_of_two_graphs_the_one_with_more_lines_in_common_is_nearer():
    history = KeyHistory()
    looked_up(history, "near", gm="def f(x):\n a = x + 1\n b = a * 2\n return b")
    looked_up(history, "far", gm="def f(x):\n c = x - 1\n d = c / 2\n return d")
    found = looked_up(history, "now", gm="def f(x):\n a = x + 1\n b = a * 3\n return b")
    assert (found.nearest_key, found.key_diff) == ("near", ["graph line 3: b = a * 2 -> b = a * 3"])


def test_a_hit_is_remembered_but_not_compared():
    history = KeyHistory()
    looked_up(history, "k1", a="1")
    assert looked_up(history, "k2", outcome="hit", a="2").key_diff is None
    assert looked_up(history, "k3", a="2", b="1").nearest_key == "k2"


def test_a_guard_miss_is_no_matter_of_keys():
    history = KeyHistory()
    looked_up(history, "k1", a="1")
    assert looked_up(history, "k2", outcome="guard_miss", a="2").nearest_key is None


def test_a_key_that_was_seen_before_and_misses_has_no_difference():
    history = KeyHistory()
    looked_up(history, "k1", a="1")
    looked_up(history, "k2", a="2")
    found = looked_up(history, "k1", a="1")
    assert (found.nearest_key, found.key_diff) == ("k1", [])


@pytest.mark.parametrize(
    "other",
    [{"cache": "aot_autograd"}, {"function": "g"}, {"line": 2}, {"function": None}, {"fx_kwargs__is_backward": "True"}],
)
def test_only_keys_of_the_same_cache_function_and_direction_are_compared(other):
    history = KeyHistory()
    looked_up(history, "k1", a="1")
    assert looked_up(history, "k2", **{"a": "2", **other}).nearest_key is None
    assert looked_up(history, "k3", a="3").nearest_key == "k1"


def test_what_a_look_up_does_not_bring_along_is_noted_beforehand():
    history = KeyHistory()
    history.note("k1", {"cpp_runtime_thread_count": "2"})
    history.note("k2", {"cpp_runtime_thread_count": "1"})
    looked_up(history, "k1", cache="aot_autograd")
    assert looked_up(history, "k2", cache="aot_autograd").key_diff == ["cpp_runtime_thread_count: 2 -> 1"]
    history.note("k3", {"constant[c]": "[2.0]"})
    looked_up(history, "k0", gm="def f(): 0")
    assert looked_up(history, "k3", gm="def f(): 1").key_diff[0] == "constant[c]: (absent) -> [2.0]"


def test_without_components_no_key_is_compared():
    history = KeyHistory()
    looked_up(history, "k1", a="1")
    assert looked_up(history, "k2").nearest_key is None
    assert looked_up(history, None, a="2").nearest_key is None


def test_the_memory_is_bounded():
    history = KeyHistory()
    for n in range(REMEMBERED + 1):
        looked_up(history, f"k{n}", a=str(n), b=str(n))
    assert looked_up(history, "now", a="0", b="x").nearest_key != "k0", "the oldest is forgotten"
    for n in range(MAX_NOTED + 1):
        history.note(f"n{n}", {"a": str(n)})
    assert looked_up(history, "n0").nearest_key is None


def test_keys_share_their_configuration():
    history = KeyHistory()
    for n in range(3):
        looked_up(history, f"k{n}", inductor_config__x="1", a=str(n))
    [known] = history._owners.values()
    assert len({id(key.settings) for key in known.keys}) == 1 and {"inductor_config[x]"} == set(known.keys[0].settings)


def test_forgotten_configurations_make_no_difference():
    history, other = KeyHistory(), KeyHistory()
    for n in range(MAX_SETTINGS * 2):
        found = looked_up(history, f"k{n}", inductor_config__x=str(n), a="1")
        other._settings.clear()
        assert found == looked_up(other, f"k{n}", inductor_config__x=str(n), a="1")
    assert found.key_diff == [f"inductor_config[x]: {n - 1} -> {n}"] and len(history._settings) <= MAX_SETTINGS


def test_the_bytes_that_stand_for_torchs_version_are_shown_as_the_version():
    first, second = KeyHistory(torch_version="2.11.0"), KeyHistory(torch_version="2.13.0")
    looked_up(first, "k1", torch_version="\x01\x02")
    second._owners = first._owners
    assert looked_up(second, "k2", torch_version="\x03").key_diff == ["torch_version: 2.11.0 -> 2.13.0"]


class Past:
    """Keys of an earlier session."""

    problem = "the disk is full"

    def __init__(self, *keys):
        self.keys, self.asked, self.kept = keys, [], []

    def earlier(self, owner):
        self.asked.append(owner)
        return self.keys

    def remember(self, keys):
        self.kept += [(owner, key.key) for owner, key in keys]


def test_a_key_of_an_earlier_session_says_when_and_where():
    from compilediag.decode.cache_keys import parse_components

    own, settings = parse_components(["[a] a: 1", "[b] inductor_config[x]: True"])
    past = Past(("old", {**own, **settings}, "yesterday, train.py"))
    history = KeyHistory(past)
    found = looked_up(history, "now", a="1", inductor_config__x="False")
    assert (found.nearest_key, found.nearest_session) == ("old", "yesterday, train.py")
    later = looked_up(history, "later", a="1", inductor_config__x="False", b="1")
    assert (later.nearest_key, later.nearest_session) == ("now", None)
    again = looked_up(history, "old", a="1", inductor_config__x="True")
    assert (again.nearest_key, again.nearest_session, again.key_diff) == ("old", "yesterday, train.py", [])
    owner = KeyOwner("fx_graph", "f", "/model.py", 1, False)
    assert past.asked == [owner], "once a function"
    looked_up(history, "old", a="1", inductor_config__x="True")
    assert past.kept == [(owner, "now"), (owner, "later"), (owner, "old")], "once a key and session"
    assert history.problem == "the disk is full" and KeyHistory().problem is None


def test_earlier_sessions_are_asked_at_the_first_miss_and_get_the_keys_of_hits_together():
    from compilediag.decode.cache_keys import parse_components

    past = Past(("old", parse_components(["[a] a: 1"])[0], "yesterday"), ("k1", {}, "yesterday"))
    history = KeyHistory(past)
    for key in ("k1", "k2", "k1"):
        looked_up(history, key, outcome="hit", a=key)
    assert (past.asked, past.kept) == ([], [])
    missed = looked_up(history, "old", a="1")
    assert missed.nearest_session == "yesterday" and len(past.asked) == 1
    assert [key for _, key in past.kept] == ["k1", "k2", "old"]
    looked_up(history, "k4", outcome="hit", a="4")
    history.save()
    history.save()
    assert [key for _, key in past.kept] == ["k1", "k2", "old", "k4"]
    for n in range(MAX_UNSAVED):
        looked_up(history, f"n{n}", outcome="hit", a=str(n))
    assert len(past.kept) == 4 + MAX_UNSAVED
