"""Every lookup that a log mentions is a row, in logs of all versions of torch."""

import os
from collections import Counter
from pathlib import Path

import pytest

import compilediag as cd
from compilediag.events import CacheLookup

from . import log_builder
from .log_builder import compile_, event, record, start, string
from .lookup_count import count_lookups

GOLDEN = Path(__file__).resolve().parents[1] / "golden"
LOGS = sorted(GOLDEN.glob("*.log.gz"))
#: More logs, of any size: a folder of one's own.
MORE = os.environ.get("COMPILEDIAG_LOGS")


def read_rows(path):
    rows = cd.ingest(path).data.rows(CacheLookup)
    return Counter(
        (
            row.cache,
            "miss" if row.outcome == "guard_miss" else row.outcome,
            None if row.cache == "pgo" else row.key,
        )
        for row in rows
    )


@pytest.mark.parametrize("path", LOGS, ids=lambda path: path.name)
def test_every_lookup_of_a_golden_log_is_a_row(path):
    assert read_rows(path) == count_lookups(path)


@pytest.mark.skipif(not MORE, reason="COMPILEDIAG_LOGS does not name a folder with more logs")
def test_every_lookup_of_other_logs_is_a_row():
    for path in sorted(Path(str(MORE)).rglob("*.log*")):
        assert read_rows(path) == count_lookups(path), path


# What single records become


def lookups(tmp_path, *records):
    log = tmp_path / "a.log"
    log.write_text(string() + start() + "".join(records) + compile_(at=9))
    return cd.ingest(log).data.rows(CacheLookup)


def artifact(name, at=1.0, **fields):
    return log_builder.artifact(name, fields, at=at)


def instant(name, at=1.0, **fields):
    return event("i", name, at=at, args=fields)


def test_graphs_of_an_entry_are_artifacts_only(tmp_path):
    graphs = [artifact("fx_graph_cache_hit", key=f"f{number}", cache_state="hit") for number in range(10)]
    entry = instant("autograd_cache_hit", key="a1") + artifact("aotautograd_cache_hit", key="a1", cache_state="hit")
    rows = lookups(tmp_path, *graphs, entry)
    assert [row.key for row in rows] == [*(f"f{number}" for number in range(10)), "a1"]
    assert {(row.function, row.compile_id, row.outcome) for row in rows} == {("f", "0/0", "hit")}


def test_an_announced_lookup_is_one_row_and_the_same_key_again_is_another(tmp_path):
    twice = instant("fx_graph_cache_miss", key="f1") + artifact("fx_graph_cache_miss", key="f1", cache_state="miss")
    rows = lookups(tmp_path, twice, artifact("fx_graph_cache_miss", key="f1", cache_state="miss"), twice)
    assert [(row.outcome, row.key) for row in rows] == [("miss", "f1")] * 3


def test_the_outcome_can_be_in_the_text_only(tmp_path):
    [row] = lookups(tmp_path, artifact("aotautograd_cache_hash", key="a1", cache_state="miss"))
    assert (row.cache, row.outcome, row.key) == ("aot_autograd", "miss", "a1")


def test_a_bundled_graph_says_that_its_entry_contains_it(tmp_path):
    [row] = lookups(tmp_path, artifact("fx_graph_bundled_cache_hit", triton_bundler_meta=None))
    assert (row.cache, row.outcome, row.reason) == ("fx_graph", "hit", "the aot_autograd entry contains the graph")


def test_an_entry_that_cannot_be_pickled_is_a_failed_store(tmp_path):
    [row] = lookups(tmp_path, artifact("aotautograd_cache_pickle_failure", error="no", field="x"))
    assert (row.cache, row.action, row.outcome, row.reason) == ("aot_autograd", "store", "failed", "not pickled: no")


def profile(name, at=1.0):
    return record("artifact", {"name": name, "encoding": "string"}, "a profile", at=at)


def timed(name, text="", **fields):
    return event("B", name, at=1.0) + text + event("E", name, at=1.1, args=fields)


def test_profiles_have_key_and_size(tmp_path):
    read = timed("pgo.get_local_code_state", profile("get_local_code_state"), cache_key="job", cache_size_bytes=7)
    remote = timed("pgo.get_remote_code_state", cache_key="job")
    written = timed("pgo.put_local_code_state", profile("put_local_code_state"), cache_key="job", cache_size_bytes=9)
    off = timed("pgo.put_remote_code_state", cache_key="job")
    rows = lookups(tmp_path, read, remote, written, off)
    assert {row.cache for row in rows} == {"pgo"} and {row.function for row in rows} == {"f"}
    found = [(row.tier, row.action, row.outcome, row.key, row.bytes) for row in rows]
    assert found == [
        ("local", "look_up", "hit", "job", 7),
        ("remote", "look_up", "miss", "job", None),
        ("local", "store", "saved", "job", 9),
    ]


def test_a_profile_without_its_event_is_a_row_at_the_end(tmp_path):
    [row] = lookups(tmp_path, profile("put_local_code_state"))
    assert (row.cache, row.outcome, row.key) == ("pgo", "saved", None)
