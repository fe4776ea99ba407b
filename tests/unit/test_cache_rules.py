"""Findings about caches: settings that change keys, lost entries, bypasses, failing servers."""

import pytest

from compilediag.diagnosis import diagnose
from compilediag.events import Compile
from tests.unit.tables_builder import FORWARD, lookup, tables

FUSION = "inductor_config[epilogue_fusion]: True -> False"
THREADS = "cpp_runtime_thread_count: 2 -> 1"
SIZE = "example_inputs[0] shape: [4, 4] -> [8, 4]"


def diagnose_events(*events):
    return diagnose(tables(*events))


def missed(key, *differences, **more):
    return lookup("miss", **{"key": key, "nearest_key": "k0", "key_diff": [*differences] or None, **FORWARD, **more})


def test_a_miss_by_itself_is_no_finding():
    assert diagnose_events(lookup("miss", key="k0", **FORWARD), missed("k1", SIZE), lookup("saved", key="k0")) == []


def test_misses_that_one_setting_explains_are_one_finding():
    rows = [missed(f"k{n}", FUSION, compile_id=f"0/{n}") for n in range(1, 4)]
    stored = [lookup("saved", key=f"k{n}", taken_s=0.5, compile_id=f"0/{n}") for n in range(1, 4)]
    (got,) = diagnose_events(*rows, *stored)
    assert got.title == (
        "3 cache misses cost 1.5 s: only inductor_config[epilogue_fusion] (True -> False) differs from the nearest "
        "earlier key"
    )
    assert got.suggestion.startswith("Inductor's configuration differs: compile both with the same options")
    assert (got.rule, got.severity, got.count) == ("cache_settings", "medium", 3)
    assert (got.seconds_lost, got.evidence, got.function) == (1.5, (1, 2, 3), "forward")


def test_a_miss_that_the_program_explains_too_is_none_of_the_settings():
    assert diagnose_events(missed("k1", FUSION, SIZE)) == []


def test_different_settings_are_separate_findings_and_several_are_one():
    found = diagnose_events(missed("k1", FUSION), missed("k2", THREADS), missed("k3", FUSION, THREADS))
    assert sorted(f.title.partition(": only ")[2].partition(" from the nearest")[0] for f in found) == [
        "cpp_runtime_thread_count (2 -> 1) differs",
        "inductor_config[epilogue_fusion] (True -> False) differs",
        "inductor_config[epilogue_fusion] and cpp_runtime_thread_count differ",
    ]


def test_the_outer_cache_holds_the_seconds_of_the_inner_one():
    rows = [
        missed("a", FUSION, cache="aot_autograd", compile_id="0/0"),
        missed("f", FUSION, compile_id="0/0"),
        lookup("saved", cache="aot_autograd", key="a", taken_s=3.0, compile_id="0/0"),
        lookup("saved", key="f", taken_s=2.0, compile_id="0/0"),
    ]
    (got,) = diagnose_events(*rows)
    assert (got.count, got.seconds_lost) == (2, 3.0)


def test_an_earlier_key_of_another_session_is_reported_with_when():
    (got,) = diagnose_events(missed("k1", "torch_version: a -> b", nearest_session="2026-11-20 12:00, train.py"))
    assert got.suggestion.endswith("The earlier key is from 2026-11-20 12:00, train.py.")


def test_a_key_that_was_seen_before_has_lost_its_entry():
    (got,) = diagnose_events(missed("k0", compile_id="0/0"), lookup("saved", key="k0", taken_s=2.0))
    assert (got.rule, got.seconds_lost) == ("cache_entry_gone", 2.0)
    assert got.title == "1 miss in fx_graph cost 2.0 s: same key as before, but its entry was deleted or never saved"


def loaded(key, **more):
    return lookup("loaded", action="load", key=key, **more)


def find_unused(*events):
    return [each for each in diagnose_events(*events) if each.rule == "artifacts_unused"]


def test_artifacts_of_which_none_was_used_are_one_finding():
    rows = [loaded("a"), loaded("b", cache="aot_autograd"), missed("k1", SIZE, compile_id="0/0")]
    (got,) = find_unused(*rows, lookup("saved", key="k1", taken_s=2.0))
    assert (got.seconds_lost, got.count, got.details) == (2.0, 1, (SIZE,))
    assert "coldstart" in got.suggestion
    assert find_unused(*rows, lookup("hit", cache="aot_autograd", key="b")) == []
    assert find_unused(*rows[:2]) == [], "nothing was compiled"


def test_artifacts_that_come_after_the_compile_are_loaded_too_late():
    (got,) = find_unused(missed("k1", compile_id="0/0"), loaded("k1"))
    assert got.suggestion.startswith("Load the artifacts before the first compile")


def test_each_process_uses_its_own_artifacts():
    rows = [event for pid in (1, 2) for event in (loaded("a", pid=pid), missed("k", SIZE, pid=pid, compile_id="0/0"))]
    (got,) = find_unused(*rows, lookup("hit", key="a", pid=1))
    assert got.count == 1


def test_a_bypass_says_what_is_expected_and_what_can_be_changed():
    (got,) = diagnose_events(lookup("bypass", cache="aot_autograd", reason="FX graph cache is not enabled", **FORWARD))
    assert got.suggestion.startswith("Set torch._inductor.config.fx_graph_cache = True")
    assert (got.rule, got.function) == ("cache_bypass", "forward")


@pytest.mark.parametrize(
    ("tier", "words"), [("remote", "TORCHINDUCTOR_REDIS_HOST"), ("local", "TORCHINDUCTOR_CACHE_DIR")]
)
def test_a_cache_that_fails_is_reported_with_where_to_look(tier, words):
    refused = "Error 111 connecting to localhost:6379. Connection refused."
    rows = [lookup("failed", tier=tier, reason=refused, exception_type="ConnectionError") for _ in range(6)]
    (got,) = diagnose_events(*rows)
    assert f"failed 6x: ConnectionError: {refused}" in got.title
    assert words in got.suggestion
    assert got.severity == "medium", "it slows down, and breaks nothing"


@pytest.mark.parametrize(
    ("reason", "says"),
    [
        (
            "Unsupported call_function target autograd_function_apply. \n Function module: torch.ops.higher_order, \n"
            "Function name: autograd_function_apply",
            "Set torch._functorch.config.autograd_cache_allow_custom_autograd_functions = True.",
        ),
        ("Unsupported post grad custom pass", "CustomGraphPass whose uuid() returns"),
        ("Unsupported joint custom pass", "uuid()"),
        (
            "Unsupported call_function target <function f>. \n Function module: my.ops, \nFunction name: f",
            'unsafe_marked_cacheable_functions = {"my.ops.f": "version 1"}',
        ),
        ("Failed to pickle cache key", "cannot be pickled"),
        ("mkldnn tensors unpickleable", "to_dense()"),
    ],
)
def test_a_bypass_comes_with_its_remedy(reason, says):
    (got,) = diagnose_events(lookup("bypass", cache="aot_autograd", reason=reason, **FORWARD))
    assert says in got.suggestion
    assert got.changes and (got.fix is not None) == ("autograd_function_apply" in reason)


def test_a_bypass_says_what_the_next_process_pays():
    compile = Compile(time_ns=1, compile_key="k9", aot_s=12.5, duration_s=14.0, outcome="ok", **FORWARD)
    (got,) = diagnose_events(lookup("bypass", reason="Unsupported post grad custom pass", compile_key="k9"), compile)
    assert "so 12.5 s of compile time is spent again" in got.suggestion or "12 s" in got.suggestion
