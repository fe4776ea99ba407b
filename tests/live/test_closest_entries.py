"""Functions with many entries: the closest are analyzed completely, the others counted, and the cause is the same."""

import contextlib
import itertools

import pytest
import torch
import torch._dynamo.convert_frame as convert_frame
from torch._dynamo.testing import CompileCounter

import compilediag as cd
from compilediag.decode.guards.failed_guards import FailedEntry
from compilediag.sources.dynamo import recompiles, torch_api
from compilediag.sources.dynamo.recompiles import EntryIndex
from compilediag.sources.guards.guard_tree import failing_guards, first_failing_guard
from compilediag.sources.guards.guard_walk import DeferredFailure, complete
from tests.live import programs

MANY = {"recompile_limit": 512, "accumulated_recompile_limit": 512, "automatic_dynamic_shapes": False}


class Pad:
    """An object whose parts are guarded."""


class Labelled(torch.nn.Module):
    label = None

    def forward(self, x):
        return x.sin() if self.label == "a" else x.cos()


def scale(x, pad, n, names):
    if pad.mask is not None:
        x = x * pad.mask
    return x.sin() * n + len(names) + (1 if pad.name == "a" else 2)


def make_calls():
    """Arguments of calls that differ in one or several ways, and the context of each call."""
    kinds = itertools.product([3, 4], [torch.float32, torch.float64], [None, 1], ["a", "b"], [1, 2.5], [1, 2])
    for number, (size, dtype, mask, name, n, rank) in enumerate(kinds):
        if number % 3 == 0:
            pad = Pad()
            pad.mask, pad.name = (None if mask is None else torch.ones(1, dtype=dtype)), name
            args = torch.ones(*([size] * rank), dtype=dtype), pad, n, ["x"] * (number % 2 + 1)
            yield torch.no_grad if number % 4 == 0 else contextlib.nullcontext, args


@pytest.fixture
def failed_calls(monkeypatch):
    """Every recompile's entries and locals are handed to the functions in this list while they are valid."""
    watchers = []
    original = convert_frame.get_and_maybe_log_recompilation_reasons

    def watch(chain, frame, *args, **kwargs):
        reasons = original(chain, frame, *args, **kwargs)
        if not torch_api.was_asked_before((chain, frame, *args), kwargs):
            for watcher in watchers:
                watcher(recompiles.FailedCall(torch_api.cache_entries(chain), reasons, frame.f_code, frame.f_locals))
        return reasons

    monkeypatch.setattr(convert_frame, "get_and_maybe_log_recompilation_reasons", watch)
    return watchers


def compare_each_failed_call(failed_calls, compare):
    failed_calls.append(compare)
    function = programs.compiled(scale)
    with torch._dynamo.config.patch(MANY):
        for context, args in make_calls():
            with context():
                function(*args)


def test_the_estimate_finds_the_entry_that_a_complete_analysis_finds(failed_calls):
    index, checked = EntryIndex(), []

    def compare(failed):
        order = index.find_closest(failed.entries, failed.ages, failed.reasons, failed.scope)
        found = [
            FailedEntry(str(e.compile_id), age, list(failing_guards(e.guard_manager, failed.f_locals)), None)
            for e, age in zip(failed.entries, failed.ages, strict=True)
        ]
        closest = min(range(len(found)), key=lambda at: found[at].distance)
        assert sorted(order) == list(range(len(found)))
        assert closest in order[:3], [(found[at].compile_id, found[at].distance) for at in order]
        checked.append(order[0] == closest)

    compare_each_failed_call(failed_calls, compare)
    assert len(checked) > 15 and sum(checked) >= 0.9 * len(checked)


def test_a_value_that_another_entry_has_shown_is_not_read_again_and_is_the_same(failed_calls):
    compared = []

    def compare(failed):
        closest = failing_guards(failed.entries[0].guard_manager, failed.f_locals)
        for entry in failed.entries[1:]:
            alone = first_failing_guard(entry.guard_manager, failed.f_locals)
            assert first_failing_guard(entry.guard_manager, failed.f_locals, closest) == alone
            compared.append(alone)

    compare_each_failed_call(failed_calls, compare)
    assert len({guard.kind for guard in compared}) >= 3


def test_what_is_described_in_the_writers_thread_is_the_same(failed_calls):
    deferred = []

    def compare(failed):
        closest = failed.entries[0].guard_manager
        at_once = failing_guards(closest, failed.f_locals)
        later = failing_guards(closest, failed.f_locals, defers=True)
        for entry in failed.entries[1:]:
            first = first_failing_guard(entry.guard_manager, failed.f_locals, at_once)
            first_later = first_failing_guard(entry.guard_manager, failed.f_locals, later)
            assert complete(first_later) == first
            deferred.append(isinstance(first_later, DeferredFailure))
        deferred.extend(isinstance(failure, DeferredFailure) for failure in later)
        assert [complete(failure) for failure in later] == list(at_once)

    compare_each_failed_call(failed_calls, compare)
    model = Labelled()
    function = torch.compile(model, backend=CompileCounter())
    with torch._dynamo.config.patch(MANY):
        for label in (1, 2, 2.5, 1e-7, "a", "it's", 'a "b" == c', "x  # y.py:3 in z", "\\", True, None, -3, 10**30):
            model.label = label
            function(torch.ones(4))
    assert sum(deferred) >= 10
    assert not all(deferred)


def describe_findings(session):
    return [(f.kind, f.source, f.what_changed, f.count, f.changes) for f in session.findings()]


def run_storm(detail, count, analyzed, of_more=None):
    """A new step at every call; two calls, far apart, have float64. Gives the session."""
    model = programs.Counter()
    function = torch.compile(model, backend=CompileCounter())
    with torch._dynamo.config.patch(MANY), cd.watch(detail=detail) as session:
        for step in range(count):
            model.step = step
            function(torch.ones(4, dtype=torch.float64 if step in (3, count - 1) else torch.float32))
    rows = session.recompiles
    assert rows["entries_checked"].tolist() == list(range(1, count))
    assert rows["entries_analyzed"].tolist() == [n if n <= analyzed else of_more or analyzed for n in range(1, count)]
    listed = session.guard_failures.groupby("compile_key")["entry_compile_key"].nunique()
    assert listed.max() == min(count - 1, analyzed)
    return session


def test_in_full_a_rare_second_cause_is_found_among_many_entries(monkeypatch):
    asked = []
    original = recompiles.failing_guards
    monkeypatch.setattr(recompiles, "failing_guards", lambda *args, **kw: asked.append(args) or original(*args, **kw))
    session = run_storm("full", 30, recompiles.MAX_ANALYZED)
    # Analyses per recompile stay the same however many entries there are.
    assert len(asked) == sum(min(n, recompiles.MAX_ANALYZED) for n in range(1, 30))
    last, first = session.recompiles.iloc[-1], session.recompiles.query("compile_id == '0/3'").iloc[0]
    # The only other entry for float64 is 26 recompiles old.
    assert last["closest_compile_id"] == "0/3" and last["guard_source"] == "self.step"
    assert (last["expected"], last["actual"]) == ("3", "29")
    closest = session.guard_failures.query("compile_id == '0/29' and entry_compile_id == '0/3'")
    assert closest["guard_source"].tolist() == ["self.step"]
    kinds = session.guard_failures.query("compile_id == '0/3'")["guard_kind"]
    assert first["entries_analyzed"] == 3 and "tensor_dtype" in set(kinds)
    bounded = describe_findings(session)
    monkeypatch.setattr(recompiles, "MAX_ANALYZED", 64)
    torch._dynamo.reset()
    # The diagnosis is what it is when every entry is analyzed.
    assert describe_findings(run_storm("full", 30, 64)) == bounded
    assert ("tensor_dtype", "x.dtype") in {finding[:2] for finding in bounded}


def test_in_lean_of_many_entries_only_the_latest_is_analyzed(monkeypatch):
    asked = []
    original = recompiles.failing_guards
    monkeypatch.setattr(recompiles, "failing_guards", lambda *args, **kw: asked.append(args) or original(*args, **kw))
    session = run_storm("lean", 20, recompiles.MAX_ANALYZED, of_more=1)
    assert len(asked) == 19
    found = session.guard_failures.groupby("compile_id")["entry_compile_id"].agg(set)
    assert found["0/8"] == {f"0/{n}" for n in range(8)} and found["0/9"] == {"0/8"}
    assert session.recompiles["closest_compile_id"].tolist() == [f"0/{n}" for n in range(19)]


def test_a_report_of_300_recompiles_has_at_most_3_mb(tmp_path):
    session = run_storm("full", 301, recompiles.MAX_ANALYZED)
    assert len(session.recompiles) == 300
    assert session.report(tmp_path / "storm.html").stat().st_size < 3 * 2**20
    # A recompile with many entries has as many events as one with eight.
    failures = session.guard_failures.groupby("compile_key", sort=False).size()
    assert failures.iloc[-2] == failures.iloc[recompiles.MAX_ANALYZED + 1] <= 2 * recompiles.MAX_ANALYZED
