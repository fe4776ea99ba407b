"""Compile keys of logs: one per attempt, in every table, the same whoever reads the log."""

import pytest

import compilediag as cd
from compilediag.events import Compile, GuardFailure, Phase, Recompile

from .log_builder import compile_, event, golden, metrics, reasons, record, start, string


@pytest.fixture
def keys(session_of_log):
    """`keys(log)`: (compile id, compile key) of all compiles; the keys numbered from a, in the order of attempts."""

    def read(log, kind=Compile):
        events = session_of_log(log).data.rows(kind)
        known = sorted({e.compile_key for e in events if e.compile_key}, key=lambda key: int(key.partition(".")[2]))
        names = {key: chr(ord("a") + at) for at, key in enumerate(known)} | {None: None}
        return [(e.compile_id, names[e.compile_key]) for e in events]

    return read


def whole(compile_id="0/0", at=0.0, **more):
    """A compile with the timed event around it, as torch 2.6 and later log it."""
    begin = event("B", "dynamo", at, compile_id, **more)
    end = event("E", "dynamo", at + 2, compile_id, **more)
    return begin + compile_(compile_id, at, **more) + end


def test_a_key_names_its_log_and_counts_attempts(session_of_log):
    log = string() + compile_("0/0") + compile_("0/1", at=2)
    first, second = session_of_log(log).compiles["compile_key"]
    token, _, number = first.partition(".")
    assert len(token) == 8 and int(token, 16) >= 0 and number == "1"
    assert second == f"{token}.2"


@pytest.mark.parametrize("make", [compile_, whole], ids=["older", "timed"])
def test_an_id_that_is_used_again_is_another_attempt(keys, make):
    log = string() + make("0/0") + make("0/0", at=10) + make("0/0", at=20)
    assert keys(log) == [("0/0", "a"), ("0/0", "b"), ("0/0", "c")]


def test_an_attempt_that_never_ended_is_another_one(keys):
    cut_off = event("B", "dynamo") + start() + event("B", "inner", 1) + event("E", "inner", 2)
    assert keys(string() + cut_off + whole("0/0", at=10), Phase) == [("0/0", "a"), ("0/0", "b")]


def test_the_lazy_backward_has_the_key_of_its_forward(keys):
    backward = record("bwd_compilation_metrics", {"compile_id": "0/0", "start_time_us": 1, "end_time_us": 2}, at=5)
    log = string() + whole("0/0") + whole("1/0", at=3) + backward
    assert keys(log) == [("0/0", "a"), ("1/0", "b"), ("0/0", "a")]


def test_processes_with_the_same_ids_have_keys_of_their_own(keys):
    log = string() + string(pid=200) + whole("0/0") + whole("0/0", pid=200) + whole("0/1", 5) + whole("0/1", 5, pid=200)
    assert [key for _, key in keys(log)] == ["a", "b", "c", "d"]


def test_a_recompile_names_the_keys_of_the_entries_that_failed(session_of_log):
    log = string() + whole("0/0") + event("B", "dynamo", 9, "0/1")
    log += reasons("0/0: L['n'] == 1", at=9) + start(9, compile_id="0/1") + metrics(10, compile_id="0/1")
    (first, again), (recompile,), (failure,) = map(session_of_log(log).data.rows, (Compile, Recompile, GuardFailure))
    assert (recompile.compile_key, recompile.closest_compile_key) == (again.compile_key, first.compile_key)
    assert (failure.compile_key, failure.entry_compile_key) == (again.compile_key, first.compile_key)


def test_an_entry_that_the_log_does_not_have_has_no_key(session_of_log):
    log = string() + reasons("0/0: L['n'] == 1") + start(compile_id="0/1") + metrics(1, compile_id="0/1")
    (recompile,) = session_of_log(log).data.rows(Recompile)
    assert recompile.compile_key is not None and recompile.closest_compile_key is None


def test_a_compile_at_the_limit_which_has_no_start_has_a_key(keys):
    failed = {"fail_type": "RecompileLimitExceeded", "fail_reason": "limit", "compile_id": "0/8"}
    log = string() + whole("0/0") + metrics(9, **failed) + metrics(12, **failed)
    assert keys(log) == [("0/0", "a"), ("0/8", "b"), ("0/8", "c")]


def test_what_is_outside_of_any_compile_has_no_key(keys):
    log = string() + event("B", "loading", 0, None) + event("E", "loading", 1, None) + whole("0/0", at=2)
    assert keys(log, Phase)[0] == (None, None)


def test_every_event_of_a_compile_of_a_real_log_has_a_key(tmp_path):
    log = tmp_path / "a.log"
    log.write_bytes(golden())
    session = cd.ingest(log)
    events = session.events
    assert events[events["compile_id"].notna()]["compile_key"].notna().all()
    assert events[events["compile_id"].isna()]["compile_key"].isna().all()
    compiles = session.compiles
    assert compiles[compiles["compile_id"] == "0/0"]["compile_key"].nunique() == 4  # Three resets.
    assert session.recompiles["lost_s"].notna().all()
    known = set(compiles["compile_key"])
    assert set(session.guard_failures["entry_compile_key"]) <= known
    assert set(session.recompiles["closest_compile_key"]) <= known


def test_logs_of_one_session_have_different_keys(tmp_path):
    for name in ("rank_0", "rank_1"):
        (tmp_path / f"dedicated_log_torch_trace_{name}_a.log").write_bytes(golden() + name.encode())
    keys_of = cd.ingest(tmp_path).compiles.groupby("rank")["compile_key"].agg(set)
    assert len(keys_of) == 2 and keys_of[0].isdisjoint(keys_of[1])
