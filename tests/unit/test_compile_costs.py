"""What a plan says about compile time when nothing recompiles: one cost per reason, each in seconds."""

import json
from pathlib import Path

import pytest

import compilediag as cd
from compilediag.events import KernelCompile, Phase, SourceStatus
from tests.unit.session_builder import recording
from tests.unit.tables_builder import SECOND, add_keys, compiled, graph, lookup, recompile

BLOCKS = {"class": "Block", "module": "model", "path": "L['self'].layers.0", "count": 10, "ops": 20, "graph_ops": 200}
WATCHED = [
    SourceStatus(time_ns=1, name=name, status="active")
    for name in ("fx_graph_cache", "aot_autograd_cache", "dynamo_cache")
]
#: 20 s: Dynamo 2 s, AOTAutograd 3 s, Inductor 15 s, of which 5 s wait for kernels.
TIMES = {"duration_s": 20.0, "dynamo_s": 20.0, "aot_s": 18.0, "inductor_s": 15.0, "triton_s": 5.0}


def forward(**more):
    return compiled(**{"trigger": "dynamo", "backend": "inductor", **TIMES, **more})


def backward(**more):
    defaults = {"time_ns": 40 * SECOND, "duration_s": 10.0, "inductor_s": 9.0, "triton_s": 1.0}
    return compiled(trigger="lazy_backward", **{**defaults, **more})


def phase(name, seconds, **more):
    return add_keys(Phase(time_ns=SECOND, compile_id="0/0", name=name, duration_s=seconds, **more))


def outer(outcome, **more):
    shared = {"cache": "aot_autograd", "compile_id": "0/0", "time_ns": 3 * SECOND, "action": "look_up"}
    return lookup(outcome, **{**shared, **more})


def inner(outcome, at=5, **more):
    return lookup(outcome, cache="fx_graph", compile_id="0/0", time_ns=at * SECOND, **more)


@pytest.fixture
def find_costs(session_of):
    """`find_costs(*events)`: kind -> cost, as the plan lists them."""
    return lambda *events, watched=WATCHED: {cost.kind: cost for cost in session_of(*events, *watched).plan().costs}


@pytest.fixture
def find_again(find_costs):
    """`find_again(*events)`: the cost of the next process."""
    return lambda *events, **options: find_costs(*events, **options)["next_process"]


# The next process


def test_a_stored_entry_leaves_dynamo_and_the_key(find_costs):
    rows = [outer("miss", duration_s=0.5), inner("miss"), inner("saved"), outer("saved", action="store")]
    cost = find_costs(forward(), backward(), *rows)["next_process"]
    assert cost.what == "The next process repeats 2.5 s of these 30.0 s: Dynamo 2.0 s, cache keys 500 ms"
    assert cost.seconds == 2.5 and "session.warmup(path)" in cost.advice
    assert cost.details == ("forward (model.py:30): 2.5 s of 30.0 s again: Dynamo 2.0 s, cache keys 500 ms",)


def test_what_a_hit_took_is_paid_again(find_again):
    cost = find_again(forward(duration_s=5.0, dynamo_s=5.0, aot_s=3.0, inductor_s=None), outer("hit"))
    assert cost.seconds == 5.0 and "all 5.0 s: Dynamo 2.0 s, loading cached graphs 3.0 s" in cost.what


def test_what_caches_saved_is_said(find_costs):
    loaded = forward(duration_s=5.0, dynamo_s=5.0, aot_s=3.0, inductor_s=None, blocks=BLOCKS)
    found = find_costs(loaded, outer("hit", saved_s=17.0))
    assert found["next_process"].what.endswith(
        "all 5.0 s: Dynamo 2.0 s, loading cached graphs 3.0 s; caches saved 17.0 s here"
    )
    assert "repeated_blocks" not in found  # Nothing was compiled.


def test_without_an_outer_entry_aotautograd_is_paid_and_inductor_is_found(find_again):
    reason = "Unsupported autograd function"
    rows = [outer("bypass", reason=reason), inner("saved"), inner("saved", at=42)]
    cost = find_again(forward(), backward(), *rows)
    assert cost.seconds == pytest.approx(6.0) and cost.advice.startswith(f"4.0 s: {reason}.")


def test_a_graph_in_no_cache_is_paid_without_its_kernels(find_again):
    rows = [outer("bypass", reason="outer"), inner("bypass", reason="inner")]
    cost = find_again(forward(), *rows)
    assert cost.seconds == pytest.approx(2.0 + 3.0 + 10.0)
    assert "3.0 s: outer." in cost.advice and "10.0 s: inner." in cost.advice


def test_an_entry_that_waits_for_its_backward_is_not_stored(find_again):
    cost = find_again(forward(), outer("miss"), inner("saved"))
    assert cost.seconds == pytest.approx(2.0 + 3.0) and "torch.no_grad()" in cost.advice


def test_a_backend_without_a_cache_is_paid_whole(find_again):
    cost = find_again(forward(backend="aot_eager", inductor_s=None))
    assert cost.seconds == 20.0 and '18.0 s: the backend "aot_eager" has no cache.' in cost.advice


def test_a_failed_compile_is_paid_again(find_again):
    assert find_again(forward(outcome="failed", inductor_s=None)).seconds == 20.0


def test_logs_have_no_stores_so_a_miss_counts_as_kept(find_again):
    assert find_again(forward(), outer("miss"), watched=WATCHED[:2]).seconds == 2.0


def test_nothing_is_said_without_lookups(find_costs):
    assert "next_process" not in find_costs(forward(), watched=WATCHED[:1])


# Identical blocks


def test_identical_blocks_save_all_but_one_of_what_grows_with_the_graph(find_costs):
    cost = find_costs(forward(blocks=BLOCKS), backward())["repeated_blocks"]
    # 30 s without 6 s of waiting for kernels, nine of ten blocks.
    assert cost.seconds == pytest.approx(24 * 0.9)
    assert cost.what == (
        "forward (model.py:30): 10 identical blocks of class Block (100 % of the graph) are compiled one by one in "
        "30.0 s; compiling one block saves about 21.6 s"
    )
    assert cost.code.splitlines()[:2] == ["for block in model.modules():", '    if type(block).__name__ == "Block":']


def test_a_function_with_identical_blocks_is_reported_once_for_all_its_compiles(find_costs):
    def make_both(key):
        return forward(compile_id=key, blocks=BLOCKS), backward(compile_id=key)

    rows = [part for number in range(3) for part in make_both(f"0/{number}")]
    cost = find_costs(*rows)["repeated_blocks"]
    assert cost.seconds == pytest.approx(3 * 24 * 0.9) and len(cost.evidence) == 6
    assert "are compiled one by one, 3 times, in 1 min 30 s; compiling one block saves about 1 min 5 s" in cost.what


def test_what_a_process_pays_once_is_not_saved(find_costs):
    kernel = add_keys(KernelCompile(time_ns=SECOND, compile_id="0/0", name="precompiled header", duration_s=2.0))
    once = [phase("VecISA.check_build", 3.0), phase("inductor_codecache_torch_key", 1.0), kernel]
    cost = find_costs(forward(blocks=BLOCKS), *once)["repeated_blocks"]
    assert cost.seconds == pytest.approx((20 - 5 - 3 - 1 - 2) * 0.9)


def test_kernels_that_were_compiled_beside_the_rest_have_to_be_waited_for(find_costs):
    ids = {"compile_id": "0/0", "duration_s": 4.0}
    kernels = [add_keys(KernelCompile(time_ns=at * SECOND, name=f"k{at}", **ids)) for at in (1, 3, 9)]
    # At least one is compiled during 6 s + 4 s, of which 5 s were waited for.
    cost = find_costs(forward(blocks=BLOCKS), *kernels)["repeated_blocks"]
    assert cost.seconds == pytest.approx((20 - 5) * 0.9 - 5)


def test_small_savings_are_not_worth_another_structure(find_costs):
    short = forward(blocks=BLOCKS, duration_s=1.0, dynamo_s=1.0, triton_s=None)
    assert "repeated_blocks" not in find_costs(short)


def test_a_graph_that_each_module_compiles_again_is_reported(find_costs):
    sizes = {"graph_ops": 9, "graph_nodes": 12, "graph_inputs": 3}
    rows = [forward(compile_id=f"{n}/0", time_ns=n * SECOND, **sizes) for n in range(4)]
    cost = find_costs(*rows)["repeated_compiles"]
    assert cost.seconds == 60.0 and "compiled 4 times" in cost.what and "isolate_recompiles" in cost.advice
    assert "repeated_compiles" not in find_costs(*rows[:2])


# A backward that never ran

JOINT = [phase("aot_trace_joint_graph", 4.0), phase("min_cut_rematerialization_partition", 1.0)]


def test_a_backward_that_never_ran_is_reported_with_its_part(find_costs):
    cost = find_costs(forward(), *JOINT)["unused_backward"]
    assert cost.what == "forward (model.py:30): 3.0 s went into a backward that never ran"
    assert cost.seconds == 3.0 and cost.code.startswith("with torch.no_grad():")


def test_a_backward_that_ran_or_cannot_be_seen_is_not_reported(find_costs):
    early = phase("compile_fx.<locals>.bw_compiler", 2.0)
    assert "unused_backward" not in find_costs(forward(), backward(), *JOINT)
    assert "unused_backward" not in find_costs(forward(), *JOINT, early)
    assert "unused_backward" not in find_costs(forward(backend="aot_eager"), *JOINT)
    assert "unused_backward" not in find_costs(forward())


def test_during_a_watch_nothing_is_concluded_from_a_backward_that_may_still_run(tmp_path):
    rows = [forward(), *JOINT, outer("miss"), inner("saved"), *WATCHED]
    session, recorder, _ = recording(tmp_path, *map(add_keys, rows))
    assert session.state == "watching" and [cost.kind for cost in session.plan().costs] == []
    recorder.close()
    session.data.end_recording()
    assert {cost.kind for cost in session.plan().costs} == {"next_process", "unused_backward"}


# The list


def test_the_check_of_the_cpu_is_a_cost(find_costs):
    cost = find_costs(phase("VecISA.check_build", 8.0))["cpu_check"]
    assert cost.seconds == 8.0 and "TORCHINDUCTOR_VEC_ISA_OK" in cost.code


def test_the_plan_lists_costs_after_its_steps(session_of):
    session = session_of(forward(blocks=BLOCKS), *JOINT, outer("miss"), *WATCHED)
    plan = session.plan()
    assert [cost.kind for cost in plan.costs] == ["next_process", "repeated_blocks", "unused_backward"]
    assert json.loads(json.dumps(plan.to_dict()["costs"]))[1]["place"] == "model.py:30"
    text = str(plan)
    assert plan.leading_cost.kind == "repeated_blocks" and "saves about 13.5 s of 20.0 s" in plan.headline
    assert text.startswith(f"{plan.headline}\nWhere compile time goes:\n- The next process repeats")
    assert max(map(len, text.splitlines())) <= 100 and "<pre><code>for block in model.modules():" in plan._repr_html_()
    assert session.findings() == []  # Costs are no findings: the program has no problem.


def test_tuning_that_never_pays_is_one_cost_and_the_headline():
    """Recorded on a GPU: four operations, whose seven tunings end at torch's own kernel."""
    data = Path(__file__).resolve().parents[2] / "notebooks" / "data" / "autotune.cdiag"
    session = cd.load(data)
    plan = session.plan()
    (tuning,) = [cost for cost in plan.costs if cost.kind == "tuning"]
    assert plan.leading_cost == tuning and plan.headline == tuning.headline
    assert tuning.code == 'torch._inductor.config.max_autotune_gemm_backends = "ATEN"'
    rules = [finding.rule for finding in session.findings() if plan.has_cost(finding)]
    assert rules == ["tuning_small_gain"] * 4


# CUDA graphs that are asked for in vain

MUTATES = {"reason": "mutated inputs (1 instances)"}
OTHER = {"function": "step", "file": "/home/ada/step.py", "line": 3}


def test_cuda_graphs_that_are_never_captured_are_the_headline(session_of):
    rows = [forward(), graph("skip", **MUTATES), graph("skip", 2, mode="backward", **MUTATES), *WATCHED]
    plan = session_of(*rows, outer("miss")).plan()
    (cost,) = [cost for cost in plan.costs if cost.kind == "not_captured"]
    assert plan.leading_cost == cost and plan.headline == cost.headline
    assert cost.headline == "No CUDA graph was captured: mutated inputs (1 instances) in forward (model.py:30)"
    assert (cost.seconds, cost.place[0]) == (0.0, "forward") and "mark_static_address" in cost.advice
    assert "At each call:\n- CUDA graphs were asked for" in str(plan)
    assert plan.to_dict()["leads"] == "not_captured"


def test_several_functions_without_cuda_graphs_are_one_cost(find_costs):
    rows = [graph("skip", **MUTATES), graph("stuck", 2, **OTHER), graph("failed", 3, reason="out of memory", **OTHER)]
    cost = find_costs(forward(), *rows)["not_captured"]
    assert cost.place == (None, None, None) and len(cost.details) == 2
    assert cost.headline.endswith("in forward (model.py:30) and 1 more")
    assert len(cost.evidence) == 2


@pytest.mark.parametrize("action", ["record", "rerecord", "replays", "warmup"])
def test_a_function_that_is_captured_or_may_be_is_no_such_cost(action, find_costs):
    assert "not_captured" not in find_costs(forward(), graph("skip", **MUTATES), graph(action, 2, **OTHER))


def test_graphs_of_the_user_do_not_count(find_costs):
    assert "not_captured" not in find_costs(forward(), graph("user_capture", backend="user"))
    skipped = [forward(), graph("skip", **MUTATES), graph("user_capture", 2, backend="user")]
    assert "not_captured" in find_costs(*skipped)


def test_what_takes_compile_time_and_what_a_step_saves_come_first(session_of):
    blocks = session_of(forward(blocks=BLOCKS), graph("skip", **MUTATES), *WATCHED).plan()
    assert blocks.leading_cost.kind == "repeated_blocks"
    steps = session_of(forward(), recompile("x.size()[0]", "tensor_size", "4", "6"), graph("skip", **MUTATES)).plan()
    assert steps.steps and steps.leading_cost is None
    assert "not_captured" in [cost.kind for cost in steps.costs]
