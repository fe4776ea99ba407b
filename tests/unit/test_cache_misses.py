"""A cache miss in words."""

import pytest

from compilediag.diagnosis import explain_miss
from compilediag.errors import CompilediagError
from compilediag.events import CacheLookup, SourceStatus
from tests.unit.tables_builder import FORWARD, tables

KEYS = SourceStatus(time_ns=1, name="keys", status="active")


def explained(*sources, **columns):
    lookup = {"cache": "fx_graph", "tier": "local", "outcome": "miss", "key": "fnow", "compile_id": "0/1", **FORWARD}
    return explain_miss(tables(CacheLookup(time_ns=1, **{**lookup, **columns}), *sources), 1)


def test_a_difference_is_explained():
    assert explained(
        KEYS, nearest_key="fold", key_diff=["inductor_config[epilogue_fusion]: True -> False"]
    ).splitlines() == [
        "forward (model.py:30), compile 0/1: missed in Inductor's cache of compiled graphs (local), key fnow",
        "Nearest earlier key, from this session: fold",
        "What differs:",
        "  inductor_config[epilogue_fusion]: True -> False",
        "Inductor's configuration differs: compile both with the same options to use the entry.",
    ]


@pytest.mark.parametrize(
    ("difference", "advice"),
    [
        ("autograd_config[a]: 1 -> 2", "AOTAutograd's configuration"),
        ("cpp_runtime_thread_count: 2 -> 1", "torch.set_num_threads"),
        ("torch_version: 2.11 -> 2.13", "build of torch"),
        ("system_info[device]: a -> b", "Another device"),
        ("example_inputs[0] shape: [2] -> [3]", "The inputs differ"),
        ("constant[c]: [1.0] -> [2.0]", "A constant"),
        ("graph line 3: a * 2 -> a * 3", "The traced code"),
    ],
)
def test_each_kind_of_difference_has_its_advice(difference, advice):
    assert advice in explained(KEYS, nearest_key="fold", key_diff=[difference]).splitlines()[-1]


def test_a_difference_of_no_known_kind_has_no_advice():
    text = explained(KEYS, nearest_key="fold", key_diff=["grad_enabled: True -> False"])
    assert text.endswith("  grad_enabled: True -> False")


def test_an_earlier_session_is_named():
    text = explained(KEYS, nearest_key="fold", nearest_session="2025-01-01 10:00 UTC, train.py", key_diff=["a: 1 -> 2"])
    assert "Nearest earlier key, from 2025-01-01 10:00 UTC, train.py: fold" in text
    assert "The recorded parts of the two keys are equal" in explained(KEYS, nearest_key="fold", key_diff=[])


def test_the_same_key_means_that_the_entry_is_gone():
    text = explained(KEYS, nearest_key="fnow", nearest_session="2025-01-01 10:00 UTC, train.py", key_diff=[])
    assert "its entry was deleted or never saved" in text and "The key is from 2025-01-01 10:00 UTC, train.py." in text


def test_a_guard_miss_names_the_guard():
    text = explained(KEYS, outcome="guard_miss", guard="s77 > 4")
    assert text.splitlines()[1].endswith("failed for these inputs: s77 > 4")
    assert explained(KEYS, outcome="guard_miss").endswith("these inputs.")


def test_without_an_earlier_key_it_says_whether_that_is_known():
    assert "the first lookup of this function" in explained(KEYS, cache="aot_autograd", reason="strict mode")
    assert "torch's reason: strict mode" in explained(KEYS, reason="strict mode")
    lean = SourceStatus(time_ns=1, name="keys", status="off", reason="detail is lean", reason_code="detail_level")
    assert 'detail="full"' in explained(lean) and 'detail="full"' in explained()


def test_what_is_not_known_is_left_out():
    text = explained(function=None, file=None, compile_id=None, key=None, tier=None, cache="pgo")
    assert text.splitlines()[0] == "unknown function: missed in the cache pgo, key unknown"
    assert text.splitlines()[1:] == ["Keys of this cache are not compared with earlier ones."]
    assert explained(cache="dynamo_code", reason="no entry yet").splitlines()[1:] == ["no entry yet"]


def test_only_misses_are_explained():
    with pytest.raises(CompilediagError, match="event 1 is not a cache miss: fx_graph hit"):
        explained(outcome="hit")
    with pytest.raises(KeyError, match="no cache lookup has the event id 7"):
        explain_miss(tables(KEYS), 7)
