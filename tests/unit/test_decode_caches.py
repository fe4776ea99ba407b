"""Cache look-ups as torch announces them."""

import pytest

from compilediag.decode.caches import cache_lookup


@pytest.mark.parametrize(
    ("name", "cache", "outcome"),
    [
        ("fx_graph_cache_hit", "fx_graph", "hit"),
        ("fx_graph_cache_miss", "fx_graph", "miss"),
        ("fx_graph_cache_bypass", "fx_graph", "bypass"),
        ("fx_graph_cache_disabled", "fx_graph", "disabled"),
        ("autograd_cache_hit", "aot_autograd", "hit"),
        ("autograd_cache_miss", "aot_autograd", "miss"),
        ("autograd_cache_bypass", "aot_autograd", "bypass"),
        ("aotautograd_cache_hit", "aot_autograd", "hit"),
    ],
)
def test_names_of_the_announcements(name, cache, outcome):
    found = cache_lookup(name, {"compile_id": "0/1", "key": "fabc"}, 7)
    assert (found.cache, found.outcome, found.tier) == (cache, outcome, "local")
    assert (found.compile_id, found.key, found.time_ns) == ("0/1", "fabc", 7)


@pytest.mark.parametrize("name", ["automatic_dynamic", "fx_graph_cache_hits", "my_fx_graph_cache_hit", "triton"])
def test_other_announcements_are_none(name):
    assert cache_lookup(name, {}, 1) is None


def test_seconds_are_told_from_either_unit_and_missing_is_missing():
    assert cache_lookup("fx_graph_cache_hit", {"time_saved_ns": 2_500_000_000}, 1).saved_s == 2.5
    assert cache_lookup("autograd_cache_hit", {"time_saved_ms": 1500}, 1).saved_s == 1.5
    found = cache_lookup("fx_graph_cache_miss", {"time_taken_ns": 500_000_000, "compile_id": "None"}, 1)
    assert (found.taken_s, found.saved_s, found.compile_id, found.key) == (0.5, None, None, None)


def test_a_guard_miss_and_a_bypass_say_so():
    assert cache_lookup("fx_graph_cache_miss", {"cache_status_detailed": "guard_miss"}, 1).outcome == "guard_miss"
    assert cache_lookup("fx_graph_cache_hit", {"cache_status_detailed": "guard_miss"}, 1).outcome == "hit"
    found = cache_lookup("autograd_cache_bypass", {"cache_bypass_reason": "Unsupported call_method"}, 1)
    assert found.reason == "Unsupported call_method"
