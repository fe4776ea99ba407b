"""What is concluded from the runs of a script without and with its plan."""

import dataclasses

import pytest

from compilediag.diagnosis import Edit
from compilediag.trials.fresh_process import ProcessRun
from compilediag.trials.script_trial import RunSummary, explain_nothing_to_try, judge

from .session_builder import make_plan

SETTINGS = {"settings": {"dynamic_sources": "L['x']"}}
PLAN = make_plan(SETTINGS, recompiles=4, recompiles_saved=3)
SECONDS_ONLY = dataclasses.replace(PLAN, recompiles=0, recompiles_saved=0, seconds_saved=1.0)


@pytest.fixture
def make_run(tmp_path):
    def make(recompiles=0, output="loss 1.0\n", seconds=1.0, **options):
        own = {
            name: options.pop(name) for name in ("graph_breaks", "limits", "functions", "distinct") if name in options
        }
        file = tmp_path / f"output-{len(list(tmp_path.iterdir()))}"
        file.write_text(output)
        run = ProcessRun(**{"session": file, "stdout": file, "exit_code": 0, "wall": 2.0, **options})
        return RunSummary(run, recompiles, seconds, **{"functions": frozenset({("step", "train.py")}), **own})

    return make


def decide(without, with_plan, plan=PLAN, is_fast=False):
    return judge(plan, without, with_plan, is_fast)


def test_a_plan_holds_if_no_more_remains_than_it_says_in_the_worst_run(make_run):
    outcome = decide([make_run(4, seconds=9.0), make_run(5, seconds=8.0)], [make_run(0), make_run(1)])
    assert outcome.holds and outcome.note is None and outcome.same_output is True
    assert (outcome.recompiles_before, outcome.recompiles_after, outcome.runs) == (4, 1, 2)
    assert (outcome.compile_seconds_before, outcome.compile_seconds_after) == (8.0, 1.0)
    assert outcome.exit_codes == (0, 0) and outcome.backend is None and outcome.code == PLAN.code()


@pytest.mark.parametrize(
    ("change", "note"),
    [
        ({"exit_code": 3}, "the exit code is 3 with the plan and 0 without it"),
        ({"exit_code": 1, "raised": "ValueError: x (a.py:1)"}, "with the plan, it raised ValueError: x (a.py:1)"),
        ({"exit_code": -9}, "with the plan, it was ended by signal 9"),
        ({"exit_code": None, "wall": 30.4}, "with the plan, it took more than 30 s and was ended"),
        ({"graph_breaks": 2}, "the plan adds graph breaks: 0 -> 2"),
        ({"functions": frozenset()}, "step (train.py) is no longer compiled with the plan"),
        ({"output": "loss 2.0\n"}, "the output differs in line 1: `loss 2.0` was `loss 1.0`"),
    ],
)
def test_what_the_plan_breaks_is_named(make_run, change, note):
    outcome = decide([make_run(4), make_run(4)], [make_run(1), make_run(1, **change)][::-1])
    assert not outcome.holds and outcome.note == note


@pytest.mark.parametrize(("distinct", "holds"), [(9, True), (2, False)])
def test_a_function_can_become_a_part_of_another_ones_graph(make_run, distinct, holds):
    both = frozenset({("step", "train.py"), ("forward", "block.py")})
    without = [make_run(4, functions=both, graph_breaks=1, distinct=9)] * 2
    outcome = decide(without, [make_run(1, distinct=distinct)] * 2)
    assert outcome.holds == holds


RAISED = {"recompiles": 1, "exit_code": 1, "raised": "FailOnRecompileLimitHit: x (a.py:1)", "is_torchs": True}


@pytest.mark.parametrize(
    ("without", "with_plan", "note"),
    [
        ([{"recompiles": 4}], [{"recompiles": 2}], "the plan says that 1 should remain, but 2 recompiles did"),
        ([{"recompiles": 4}], [{"recompiles": 4}], "the plan does not help: 4 recompiles without it and 4 with it"),
        (
            *([{"recompiles": 4}, {"recompiles": 4, "exit_code": 2}], [{"recompiles": 1}] * 2),
            "the exit codes without the plan differ: 0 and 2",
        ),
        (
            *([{"recompiles": 2}, {"recompiles": 4}], [{"recompiles": 2}, {"recompiles": 1}]),
            "the recompiles without the plan differ by chance: 2 and 4",
        ),
        ([RAISED], [RAISED], f"with the plan too, it raised {RAISED['raised']}"),
        ([RAISED], [{"recompiles": 1}], None),
        ([{"recompiles": 1, "limits": 1}], [{"recompiles": 4}], None),
    ],
)
def test_what_runs_have_in_common_decides(make_run, without, with_plan, note):
    outcome = decide([make_run(**run) for run in without], [make_run(**run) for run in with_plan])
    assert (outcome.holds, outcome.note) == (note is None, note)
    if without == [RAISED]:
        assert outcome.exit_codes == (1, with_plan[0].get("exit_code", 0)) and outcome.same_output is None


def test_a_plan_about_compile_time_has_to_save_compile_time(make_run):
    assert decide([make_run(0, seconds=9.0)], [make_run(0, seconds=3.0)], SECONDS_ONLY).holds
    outcome = decide([make_run(0, seconds=3.0)], [make_run(0, seconds=3.0)], SECONDS_ONLY)
    assert not outcome.holds
    assert outcome.note == "the plan saves no compile time: 3.0 s without it and 3.0 s with it"


def test_what_is_not_known_is_a_note_of_a_plan_that_holds(make_run):
    plan = make_plan(SETTINGS, {}, recompiles=4, recompiles_saved=3)
    outcome = decide([make_run(4)], [make_run(2, has_own_caches=False)], plan, is_fast=True)
    assert outcome.holds and outcome.backend == "eager"
    assert outcome.note == (
        "step 2 was not tried: you have to make that change; the program sets its own cache folder, so later runs can "
        "find what earlier ones compiled; the guards that a backend adds were not compared (--fast)"
    )


@pytest.mark.parametrize(
    ("plan", "reason"),
    [
        (make_plan(recompiles=0), "nothing recompiled"),
        (make_plan(recompiles=2), "the plan has no step; session.plan() gives the reasons"),
        (
            make_plan({}, recompiles=2),
            "the plan has only changes that a program cannot make; compilediag plan shows them",
        ),
        (PLAN, None),
        (make_plan({"edits": (Edit("a.py", 1, "replace", "a", "b"),)}, recompiles=1), None),
    ],
)
def test_a_plan_with_nothing_to_try_says_why(plan, reason):
    assert explain_nothing_to_try(plan) == reason
