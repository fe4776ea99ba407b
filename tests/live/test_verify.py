"""Fixes tried on a workload: what is reported, and that the user's own compile state and objects stay as they are."""

import dataclasses
import itertools
import logging
import os
import random
import sys

import pytest
import torch
from torch._C._dynamo.eval_frame import _debug_get_cache_entry_list
from torch._dynamo.utils import counters

import compilediag
import compilediag.trials.verify
from compilediag.diagnosis.change import Edit
from compilediag.errors import CompilediagError

from .programs import Growing, compiled


def sizes(f, *lengths):
    return [f(torch.ones(n)) for n in lengths]


def sized():
    """A function that recompiled for its sizes: the function, its compiled form, the session, the finding."""

    def double(x):
        return x * 2

    f = compiled(double, dynamic=False)
    with compilediag.watch() as session:
        sizes(f, 4, 6, 7)
    return double, f, session, session.findings()[0]


def test_a_fix_that_holds_says_what_it_saved():
    _, f, session, finding = sized()
    verified = session.verify(finding, lambda: sizes(f, *range(4, 11)))
    assert verified.holds and verified.note is None
    assert (verified.recompiles_before, verified.recompiles_after) == (6, 0)
    assert 0 < verified.seconds_after < verified.seconds_before
    assert repr(verified).startswith("holds, 6 recompiles -> 0, ")
    assert "torch.compiler.config.dynamic_sources = \"L['x']\"" in repr(verified)


def test_a_fix_that_does_not_help_says_so():
    _, f, session, finding = sized()
    other = dataclasses.replace(finding, fix={"dynamic_sources": "L['y']"})
    verified = session.verify(other, lambda: sizes(f, 4, 6, 7))
    assert not verified.holds
    assert (verified.recompiles_before, verified.recompiles_after) == (2, 2)
    assert "the fix does not help: it happened 2x without and 2x with it" in repr(verified)


def test_a_fix_that_helps_in_part_says_what_is_left():
    def work():
        f = compiled(Growing())
        return [f(torch.ones(2)) for _ in range(5)]

    with compilediag.watch() as session:
        work()
    finding = dataclasses.replace(session.findings()[0], fix={"allow_unspec_int_on_nn_module": True})
    verified = session.verify(finding, work)
    assert verified.holds
    assert (verified.recompiles_before, verified.recompiles_after) == (4, 1)
    assert verified.note == "it still happened once"
    assert [f.source for f in verified.left] == ["self.step"]


def test_a_fix_that_alone_changes_nothing_names_the_other_cause():
    def work():
        f = compiled(lambda x, name: x * len(name), dynamic=False)
        return [f(torch.ones(n), "n" * n) for n in (4, 6, 7)]

    with compilediag.watch() as session:
        work()
    finding = next(f for f in session.findings() if f.fix or f.source == "name")
    fixed = dataclasses.replace(
        finding, source="x.size()[0]", kind="tensor_size", fix={"dynamic_sources": "L['x']"}, rule="size_changes"
    )
    verified = session.verify(fixed, work)
    assert not verified.holds
    assert verified.recompiles_after == 2
    assert '"n" * n was' in verified.note, "the argument as the call spells it"


def work_with_two_paths():
    """Recompiles whose closest entry is not the latest one, so that lean and full name different causes."""

    def scale(x, y, flag, name):
        return y * len(name) if flag else x * len(name)

    f = compiled(scale, dynamic=False)
    y = torch.ones(3)
    calls = ((4, False, "a"), (4, True, "bb"), (6, False, "a"))
    return [f(torch.ones(n), y, flag, name) for n, flag, name in calls]


@pytest.mark.parametrize("detail", ["full", "lean"])
def test_a_run_is_recorded_with_the_detail_of_the_findings_session(detail):
    with compilediag.watch() as session:
        work_with_two_paths()
    finding = next(f for f in session.findings() if f.source == "x.size()[0]")
    verified = compilediag.trials.verify.verify(finding, work_with_two_paths, detail)
    assert verified.holds is (detail == "full"), verified
    assert bool(verified.strikes_before) is verified.holds


def test_verify_and_advise_use_the_detail_of_their_session():
    with compilediag.watch() as session:
        work_with_two_paths()
    finding = next(f for f in session.findings() if f.source == "x.size()[0]")
    verified = session.verify(finding, work_with_two_paths)
    assert verified.holds and verified.recompiles_after == 1, verified
    assert session.advise(work_with_two_paths).fix == finding.fix


# --- plans -----------------------------------------------------------------------------------------------------------


def test_a_plan_of_settings_is_tried_and_its_outcome_is_stored():
    def work():
        f = compiled(lambda x, k: x * k, dynamic=False)
        return [f(torch.ones(n), k) for n, k in ((4, 2), (6, 5), (7, 9))]

    with compilediag.watch() as session:
        work()
    plan = session.plan()
    verified = session.verify(plan, work)
    assert verified.holds and verified.plan is plan, verified
    assert (verified.recompiles_before, verified.recompiles_after) == (2, 0)
    tried = session.plan().tried
    assert tried["holds"] and (tried["recompiles_before"], tried["recompiles_after"]) == (2, 0)
    assert tried["same_output"] and tried["code"] == plan.code()


def test_the_edits_of_a_plan_are_made_for_the_run_only():
    def work():
        f = compiled(lambda x: x * 2, dynamic=False)
        found = []
        for n in (4, 6, 7):
            x = torch.ones(n)
            found.append(f(x))
        return found

    with compilediag.watch() as session:
        work()
    line = work.__code__.co_firstlineno + 5
    edit = Edit(__file__, line, "insert_before", "found.append(f(x))", "torch._dynamo.mark_dynamic(x, 0)")
    plan = dataclasses.replace(session.plan(), settings={})
    plan = dataclasses.replace(plan, steps=(dataclasses.replace(plan.steps[0], settings=None, edits=(edit,)),))
    before = work.__code__
    # dynamic=False overrides the mark, so the plan is tried on a function that is compiled with the default.
    verified = session.verify(plan, work)
    assert work.__code__ is before
    assert verified.recompiles_before == 2 and verified.recompiles_after is not None


def test_a_plan_without_a_step_is_not_run():
    def work():
        raise AssertionError("must not run")

    with compilediag.watch() as session:
        pass
    verified = session.verify(session.plan(), work)
    assert not verified.holds and verified.note == "nothing to try: nothing recompiled"
    assert session.plan().tried is None


def test_an_edit_outside_of_a_function_is_one_line():
    _, f, session, finding = sized()
    plan = session.plan()
    edit = Edit(__file__, 1, "insert_before", '"""Fixes tried', "x = 1")
    plan = dataclasses.replace(plan, steps=(dataclasses.replace(plan.steps[0], edits=(edit,)),))
    with pytest.raises(CompilediagError, match="test_verify.py:1 is not in a function that the workload can run again"):
        session.verify(plan, lambda: sizes(f, 4, 6))


# --- progress --------------------------------------------------------------------------------------------------------


def test_progress_is_a_line_on_a_terminal_and_nothing_elsewhere(monkeypatch, capsys):
    _, f, session, finding = sized()
    session.verify(finding, lambda: sizes(f, 4, 6))
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    session.verify(finding, lambda: sizes(f, 4, 6))
    shown = capsys.readouterr().err.split("\r\x1b[K")
    assert shown[1:3] == ["compilediag: run 1 of 3: without changes", "compilediag: run 2 of 3: without changes"]
    assert shown[3].startswith("compilediag: run 3 of 3: with torch.compiler.config.dynamic_sources = ")
    assert shown[4:] == [""]


def test_a_finding_without_a_setting_is_not_run():
    def work():
        raise AssertionError("must not run")

    _, _, session, finding = sized()
    verified = session.verify(dataclasses.replace(finding, fix=None), work)
    assert not verified.holds and verified.recompiles_before is None
    assert "no setting fixes this; change the code" in repr(verified)


def test_a_workload_that_does_not_show_it_says_so():
    _, f, session, finding = sized()
    verified = session.verify(finding, lambda: sizes(f, 4, 4))
    assert not verified.holds
    assert "without the fix it did not happen" in verified.note


def test_a_workload_that_is_no_function_is_one_line():
    _, _, session, finding = sized()
    with pytest.raises(CompilediagError, match="callable without arguments"):
        session.verify(finding, 3)


def test_a_setting_that_this_torch_lacks_is_one_line():
    _, f, session, finding = sized()
    with pytest.raises(CompilediagError, match="this torch has no torch._dynamo.config.no_such_setting"):
        session.verify(dataclasses.replace(finding, fix={"no_such_setting": 1}), lambda: sizes(f, 4, 6))


# --- workloads that can't be compared ------------------------------------------------------------------------------


class Speechless(Exception):
    def __str__(self):
        raise RuntimeError("no words")


@pytest.mark.parametrize("error", [ValueError("bad\nbatch"), Speechless()])
def test_a_workload_that_raises_is_reported_in_one_line(error):
    _, f, session, finding = sized()

    def work():
        sizes(f, 4, 6)
        raise error

    verified = session.verify(finding, work)
    assert not verified.holds and verified.recompiles_before == 1 and verified.recompiles_after is None
    assert verified.note.startswith("the workload raised without the fix, so nothing was compared: ")
    assert type(error).__name__ in verified.note and "test_verify.py" in verified.note
    assert "\n" not in repr(verified)


def test_a_workload_that_raises_with_the_fix_only():
    _, f, session, finding = sized()

    def work():
        sizes(f, 4, 6)
        if torch.compiler.config.dynamic_sources:
            raise ValueError("no such size")

    verified = session.verify(finding, work)
    assert not verified.holds
    assert verified.note.startswith("with the fix the workload raises: ValueError: no such size")


def test_results_that_differ_by_chance_are_reported():
    _, f, session, finding = sized()
    numbers = itertools.count()
    verified = session.verify(finding, lambda: (sizes(f, 4, 6), next(numbers)))
    assert not verified.holds
    assert verified.note == "two runs without the fix differ by chance: the result[1] was 0, then 1"


def test_recompiles_that_differ_by_chance_are_reported():
    _, f, session, finding = sized()
    lengths = itertools.count(5)
    verified = session.verify(finding, lambda: sizes(f, *range(4, next(lengths))) and None)
    assert not verified.holds
    assert "two runs without the fix differ by chance: 0 and 1 recompiles" in verified.note


def test_a_fix_that_changes_the_results_does_not_hold():
    _, f, session, finding = sized()
    scale = {"a": 1.0}

    def work():
        sizes(f, 4, 6)
        scale["a"] += bool(torch.compiler.config.dynamic_sources)
        return {"loss": torch.ones(2) + bool(torch.compiler.config.dynamic_sources)}

    verified = session.verify(finding, work)
    assert not verified.holds
    assert verified.note == "the fix changes the results: the result['loss'] differs by up to 1"
    assert scale == {"a": 1.0}


def test_what_a_workload_changes_is_a_result_too():
    _, f, session, finding = sized()
    weight = torch.ones(2)

    def work():
        sizes(f, 4, 6)
        weight.add_(bool(torch.compiler.config.dynamic_sources))

    verified = session.verify(finding, work)
    assert not verified.holds
    assert "the fix changes the results: weight" in verified.note
    assert weight.tolist() == [1, 1]


def test_objects_that_answer_nothing_are_never_asked():
    class Mute:
        def __repr__(self):
            raise AssertionError("asked")

        __eq__ = __hash__ = __str__ = __bool__ = __len__ = __iter__ = __repr__

    _, f, session, finding = sized()
    mute = Mute()
    verified = session.verify(finding, lambda: (sizes(f, 4, 6), mute, [mute], {"a": mute}))
    assert verified.holds, verified


# --- what stays as it is -------------------------------------------------------------------------------------------


def test_the_users_compiled_code_is_theirs_before_and_after():
    double, f, session, finding = sized()
    before = _debug_get_cache_entry_list(double.__code__)
    counted = {group: dict(counts) for group, counts in counters.items()}
    session.verify(finding, lambda: sizes(f, 4, 6, 9, 12))
    after = _debug_get_cache_entry_list(double.__code__)
    assert len(before) == 3
    assert [entry.code for entry in after] == [entry.code for entry in before]
    assert {group: dict(counts) for group, counts in counters.items()} == counted
    with compilediag.watch() as again:
        sizes(f, 4, 6, 7)
        assert len(again.compiles) == 0
        sizes(f, 12)
    assert len(again.recompiles) == 1


def test_what_torch_learned_of_sizes_is_neither_used_nor_lost():
    def double(x):
        return x * 2

    f = compiled(double)
    with compilediag.watch() as session:
        sizes(f, 4, 6, 7)
    verified = session.verify(session.findings()[0], lambda: sizes(f, 4, 6, 7))
    assert (verified.recompiles_before, verified.recompiles_after) == (1, 0)
    with compilediag.watch() as again:
        sizes(f, 6, 7, 9)
    assert len(again.compiles) == 0


def test_code_that_only_the_workload_compiled_is_forgotten():
    _, _, session, finding = sized()

    def fresh(x):
        return x * 3

    session.verify(finding, lambda: compiled(fresh)(torch.ones(3)))
    assert _debug_get_cache_entry_list(fresh.__code__) == []
    with compilediag.watch() as again:
        compiled(fresh)(torch.ones(3))
    assert again.compiles["is_recompile"].tolist() == [False]


def test_a_limit_that_was_hit_is_no_limit_in_the_run_and_stays_hit():
    def apply(x, function):
        return function(x)

    f = compiled(apply)

    def work():
        return [f(torch.ones(2), function) for function in (torch.sin, torch.cos, torch.tan, torch.exp)]

    with torch._dynamo.config.patch(recompile_limit=2):
        with compilediag.watch() as session:
            work()
        limit = next(finding for finding in session.findings() if finding.rule == "recompile_limit")
        verified = session.verify(limit, work)
        assert verified.holds and (verified.strikes_before, verified.strikes_after) == (1, 0)
        with compilediag.watch() as again:
            work()
        assert len(again.recompiles) == 0


def test_a_reset_within_the_workload_is_the_workloads_own():
    double, f, session, finding = sized()

    def work():
        torch._dynamo.reset()
        return sizes(f, 4, 6)

    assert session.verify(finding, work).holds
    assert len(_debug_get_cache_entry_list(double.__code__)) == 3
    torch._dynamo.reset()
    assert _debug_get_cache_entry_list(double.__code__) == []


def test_settings_folders_and_random_numbers_are_as_before():
    _, f, session, finding = sized()
    environment = dict(os.environ)
    torch.manual_seed(3), random.seed(3)
    expected = (torch.rand(3), random.random())
    torch.manual_seed(3), random.seed(3)

    def work():
        torch.set_grad_enabled(False)
        return sizes(f, 4, 6), torch.rand(5), random.random()

    with torch.compiler.config.patch(dynamic_sources="L['mine']"):
        assert session.verify(finding, work).holds
        assert torch.compiler.config.dynamic_sources == "L['mine']"
    assert torch.is_grad_enabled()
    assert (torch.rand(3).tolist(), random.random()) == (expected[0].tolist(), expected[1])
    assert dict(os.environ) == environment


TOTAL = 1


def test_the_users_objects_are_as_before():
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.BatchNorm1d(2))
    optimizer = torch.optim.Adam(model.parameters())
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1)
    losses, seen, best = [], {}, [None]
    f = compiled(model, dynamic=False)
    count = 0

    def train():
        nonlocal count
        global TOTAL
        for n in (4, 6, 8):
            optimizer.zero_grad()
            loss = f(torch.rand(n, 3)).square().mean()
            loss.backward()
            optimizer.step()
            scheduler.step()
            losses.append(float(loss.detach()))
            seen[n] = loss
            model.steps = n
        best[0], count, TOTAL = losses, count + 1, TOTAL + 1

    def state():
        tensors = [t.detach().tolist() for t in (*model.state_dict().values(), *model.parameters())]
        grads = [p.grad for p in model.parameters()]
        rates = [group["lr"] for group in optimizer.param_groups]
        return tensors, grads, rates, len(optimizer.state), scheduler.last_epoch, hasattr(model, "steps")

    with compilediag.watch() as session:
        sizes_of_batches = [f(torch.rand(n, 3)) for n in (4, 6, 8)]
    assert len(sizes_of_batches) == 3
    finding = session.findings()[0]
    before = state()
    verified = session.verify(finding, train)
    assert verified.holds, verified
    assert state() == before
    assert (losses, seen, best, count, TOTAL) == ([], {}, [None], 0, 1)


def test_an_interrupt_passes_and_leaves_everything_as_it_was():
    double, f, session, finding = sized()
    seen = []

    def work():
        sizes(f, 4, 6)
        seen.append(1)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        session.verify(finding, work)
    assert seen == []
    assert len(_debug_get_cache_entry_list(double.__code__)) == 3
    assert compilediag.current() is None


def test_a_recording_sees_nothing_of_it_and_goes_on():
    def double(x):
        return x * 2

    f = compiled(double, dynamic=False)
    with compilediag.watch() as session:
        sizes(f, 4, 6)
        handlers = logging.getLogger("torch.__trace").handlers
        before = (len(session.events), len(session.compiles))
        inner = []

        def work():
            inner.append(compilediag.current())
            return sizes(f, 4, 6, 7)

        assert session.verify(session.findings()[0], work).holds
        assert compilediag.current() is session
        assert (len(session.compiles), len(session.recompiles)) == (before[1], 1)
        assert type(logging.getLogger("torch.__trace").handlers) is type(handlers)
        sizes(f, 9)
        assert len(session.recompiles) == 2
        assert {s["status"] for s in session.status() if s["name"] in ("compiles", "recompiles")} == {"active"}


def test_a_watch_within_the_workload_is_of_the_run():
    _, f, session, finding = sized()

    def work():
        with compilediag.watch() as inner:
            assert inner is not session
            return sizes(f, 4, 6)

    assert session.verify(finding, work).holds


def test_gradients_of_compiled_backwards_are_compared():
    torch.manual_seed(0)
    weight = torch.nn.Parameter(torch.rand(3))

    def work():
        f = compiled(lambda x: (x * weight).sum(), backend="aot_eager", dynamic=False)
        for n in (2, 4, 5):
            f(torch.ones(n, 3)).backward()

    with compilediag.watch() as session:
        work()
    before = weight.grad.clone()
    verified = session.verify(session.findings()[0], work)
    assert verified.holds and verified.recompiles_after == 0
    assert torch.equal(weight.grad, before)


def test_with_inductor_a_run_has_caches_of_its_own(fresh_inductor_cache):
    def work():
        f = torch.compile(lambda x: x @ x, dynamic=False)
        return [f(torch.ones(n, n)) for n in (8, 16)]  # A call of a library: no C++ to compile.

    with compilediag.watch() as session:
        expected = work()
    kept = sorted(fresh_inductor_cache.rglob("*"))
    verified = session.verify(session.findings()[0], work)
    assert verified.holds and verified.recompiles_after == 0, verified
    assert sorted(fresh_inductor_cache.rglob("*")) == kept
    assert [y.tolist() for y in work()] == [y.tolist() for y in expected]


def test_a_state_that_cannot_be_restored_says_so_and_does_not_hold(monkeypatch):
    """A tensor that refuses keeps what the workload wrote to it, so the next run starts from another state."""
    from compilediag.trials import snapshots

    def refuse(tensor, value):
        raise RuntimeError("this tensor is in use")

    def work():
        total.add_(1.0)
        return sizes(f, 4, 6, 7)

    total = torch.zeros(1)
    _, f, session, finding = sized()
    assert session.verify(finding, work).holds
    monkeypatch.setattr(snapshots, "_put_tensor", refuse)
    found = session.verify(finding, work)
    assert not found.holds
    assert found.note == "the state before a run cannot be restored: total: RuntimeError: this tensor is in use"
    assert session.advise(work).note == found.note


def test_a_workload_with_too_many_objects_says_so(monkeypatch):
    from compilediag.trials import snapshots

    monkeypatch.setattr(snapshots, "MAX_OBJECTS", 3)
    many = [[n] for n in range(10)]
    snapshot = snapshots.Snapshot(lambda: many)
    assert snapshot.problem == "the workload reaches more than 3 objects"
