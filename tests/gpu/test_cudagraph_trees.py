"""CUDA graphs of `mode="reduce-overhead"`: each scenario against torch's counters, its trees and its skip reasons."""

import functools
import warnings

import pytest
import torch

import compilediag as cd
from compilediag import sources
from tests.gpu import graph_programs as programs
from tests.live.entered import entered
from tests.live.parity.assertion import in_parity
from tests.live.parity.cudagraph_state import captured, in_graph_parity, managers

patched = torch._inductor.config.patch


@pytest.fixture(autouse=True)
def one_cache():
    """AOTAutograd's cache off: what a graph is compiled to, or found as, is FxGraphCache's alone."""
    with torch._functorch.config.patch(enable_autograd_cache=False):
        yield


def rows(seen, *actions):
    session = getattr(seen, "session", seen)
    frame = session.cudagraphs
    frame = frame[frame["action"].isin(actions)] if actions else frame
    return frame.astype(object).where(frame.notna(), None).to_dict("records")


def actions(seen):
    return [row["action"] for row in rows(seen)]


def user_line(row):
    return row["user_file"] == programs.__file__ and row["user_code"]


# Warm-up and capture


@pytest.mark.parametrize("detail", ["lean", "full"])
def test_inference_is_warmed_up_and_recorded_once(detail):
    seen = in_graph_parity(programs.inference, detail)
    warmup, record = rows(seen)
    for row in (warmup, record):
        assert (row["compile_id"], row["function"], row["backend"]) == ("0/0", "<lambda>", "trees")
        assert (row["mode"], row["device"], row["sizes"]) == ("inference", "cuda:0", "64")
        assert row["duration_ms"] > 0
    assert (warmup["action"], record["action"]) == ("warmup", "record")
    (manager,) = managers()
    (graph,) = captured(manager)
    segments = torch.cuda.memory_snapshot()
    in_pool = [s["total_size"] for s in segments if s["segment_pool_id"] == manager.cuda_graphs_thread_pool]
    assert (record["graph_id"], record["parent_id"], record["pool_bytes"]) == (graph.id.id, None, sum(in_pool))
    assert (record["nodes"], record["copied_inputs"]) == (1, 1)


def test_training_is_recorded_forward_and_backward():
    seen = in_graph_parity(programs.training)
    assert [(row["action"], row["mode"]) for row in rows(seen)] == [
        ("warmup", "forward"),
        ("warmup", "backward"),
        ("record", "forward"),
        ("record", "backward"),
    ]
    forward, backward = rows(seen, "record")
    assert (forward["parent_id"], backward["parent_id"]) == (None, forward["graph_id"])
    assert forward["compile_id"] == backward["compile_id"] and forward["function_id"] != backward["function_id"]
    assert forward["nodes"] > 1 and backward["nodes"] > 1


@pytest.mark.parametrize(
    "program",
    [programs.mutated_buffer, programs.mutated_constant, programs.factory, programs.dead_fill],
)
def test_what_stays_within_the_graph_is_recorded(program):
    assert actions(in_graph_parity(program)) == ["warmup", "record"]


def test_each_size_is_warmed_up_and_recorded():
    seen = in_graph_parity(programs.sizes)
    assert actions(seen) == ["warmup", "record"] * 3
    assert [row["sizes"] for row in rows(seen, "record")] == ["4x3", "5x3", "6x3"]
    assert {row["compile_id"] for row in rows(seen)} == {"0/0"}
    assert len({row["function_id"] for row in rows(seen)}) == 3


def test_without_trees_the_capture_is_recorded_too():
    (record,) = rows(in_graph_parity(programs.without_trees))
    assert (record["action"], record["backend"], record["nodes"]) == ("record", "no_trees", 1)


# Recorded again


def test_a_parameter_that_moved():
    seen = in_graph_parity(programs.parameter_moves)
    assert actions(seen) == ["warmup", "record", "rerecord"]
    (again,) = rows(seen, "rerecord")
    assert (again["mismatch"], again["reason"]) == ("StaticInputIdxMismatch", "static input data pointer changed")
    assert "(input " in again["input"] and " and " not in again["input"], "one parameter of two"


def test_an_input_that_another_graph_made_elsewhere(fresh_inductor_cache):
    seen = in_graph_parity(programs.input_of_a_graph_moves)
    assert actions(seen) == ["warmup", "warmup", "record", "record", "rerecord"]
    (again,) = rows(seen, "rerecord")
    assert again["mismatch"] == "CudagraphManagedIdxMismatch"
    assert again["input"].endswith(" (input 0)") and user_line(again)
    assert again["parent_id"] == rows(seen, "record")[0]["graph_id"]
    assert again["copied_inputs"] == 0


def test_an_output_that_stayed_alive(fresh_inductor_cache):
    seen = in_graph_parity(programs.output_stays_alive)
    (again,) = rows(seen, "rerecord")
    assert again["mismatch"] == "ExpectedDeadIndicesBeforeGraphMismatch"
    assert "x + 2" in user_line(again), "the line that made the output"
    assert again["input"] is None


def test_too_many_re_records_end_in_eager_runs():
    seen = in_graph_parity(programs.many_graphs)
    assert actions(seen).count("rerecord") == 1
    (limit,) = rows(seen, "limit")
    assert limit["reason"].startswith("re-recorded more than 1 times") and limit["counted"]
    assert limit["mismatch"] == "CudagraphManagedIdxMismatch" and limit["input"].endswith(" (input 0)")
    (again,) = rows(seen, "rerecord")
    assert limit["function_id"] == again["function_id"] and limit["compile_id"] == again["compile_id"]


# Skipped, whole or in part


def test_a_mutated_input_is_skipped_when_it_runs(fresh_inductor_cache):
    seen = in_graph_parity(programs.mutated_input)
    (skip,) = rows(seen)
    assert (skip["action"], skip["reason"], skip["counted"]) == ("skip", "mutated inputs (1 instances)", True)
    assert (skip["compile_id"], skip["function"], skip["mode"]) == ("0/0", "function", "inference")
    assert user_line(skip) == "x.add_(1)"


@pytest.mark.parametrize("cut", [False, True])
def test_a_mutated_input_is_skipped_when_it_is_compiled(cut, fresh_inductor_cache):
    with patched({"triton.cudagraph_support_input_mutation": False, "graph_partition": cut}):
        seen = in_graph_parity(programs.mutated_input)
    (skip,) = rows(seen)
    assert (skip["reason"], skip["counted"]) == ("mutated inputs (1 instances)", True)
    assert user_line(skip) == "x.add_(1)"


def test_what_is_resized_is_mutated_after_a_graph_break(fresh_inductor_cache):
    seen = in_graph_parity(programs.resized)
    assert sorted(actions(seen)) == ["record", "skip", "warmup"]
    (skip,) = rows(seen, "skip")
    assert (skip["reason"], user_line(skip)) == ("mutated inputs (1 instances)", "return y.fill_(2)")
    assert rows(seen, "record")[0]["nodes"] == 0, "a copy of nothing"


@pytest.mark.parametrize("program", [programs.from_host, programs.to_host])
def test_a_copy_between_host_and_gpu_cuts_the_graph(program, fresh_inductor_cache):
    seen = in_graph_parity(program)
    assert actions(seen) == ["partition", "warmup", "record"]
    (cut,) = rows(seen, "partition")
    assert (cut["partitions"], cut["captured_parts"], cut["mode"]) == (2, 1, "inference")
    assert cut["reason"] in ("DeviceCopy ops", "cpu ops")


def test_a_tensor_of_the_cpu_is_skipped_where_graphs_are_not_cut(fresh_inductor_cache):
    with patched(graph_partition=False):
        seen = in_graph_parity(programs.from_host)
    (skip,) = rows(seen)
    assert skip["reason"].startswith("cpu device (") and skip["counted"]
    assert ".to(DEVICE)" in user_line(skip)


def test_an_operation_that_can_not_be_captured_cuts_the_graph(fresh_inductor_cache):
    seen = in_graph_parity(programs.unsafe_operation)
    assert actions(seen) == ["partition", *["warmup"] * 2, *["record"] * 2]
    (cut,) = rows(seen, "partition")
    assert (cut["partitions"], cut["captured_parts"], cut["reason"]) == (3, 2, "CUDAGraph-unsafe custom ops")
    assert "unsafe(" in user_line(cut)


def test_such_an_operation_is_skipped_where_graphs_are_not_cut(fresh_inductor_cache):
    with patched(graph_partition=False):
        (skip,) = rows(in_graph_parity(programs.unsafe_operation))
    assert skip["reason"].startswith("incompatible op compilediag_tests.unsafe") and "unsafe(" in user_line(skip)


def test_a_partitioned_graph_from_the_cache_is_recorded_again(fresh_inductor_cache):
    def run():
        for _ in range(2):
            torch._dynamo.reset()
            compiled = programs.from_host()
        return compiled

    seen = in_parity(run)
    first, second = rows(seen, "partition")
    assert (first["partitions"], first["captured_parts"]) == (second["partitions"], second["captured_parts"]) == (2, 1)
    assert first["reason"] and second["reason"] is None, "it is not kept with the compiled graph"


def test_symbolic_sizes_are_skipped_on_request(fresh_inductor_cache):
    without = functools.partial(programs.sizes, **{"triton.cudagraph_skip_dynamic_graphs": True})
    with patched(graph_partition=False):
        (skip,) = rows(in_graph_parity(without))
    assert skip["reason"].startswith("graph with symbolic shapes inputs") and skip["counted"] and user_line(skip)


def test_symbolic_sizes_on_request_leave_no_part_to_capture(fresh_inductor_cache):
    without = functools.partial(programs.sizes, **{"triton.cudagraph_skip_dynamic_graphs": True})
    (skip,) = rows(in_graph_parity(without))
    assert skip["reason"] == "no part of the graph can be captured: dynamic shape ops"
    assert skip["counted"] is False, "torch says nothing of it"


@pytest.mark.skipif("torch.cuda.device_count() < 2", reason="one GPU only")
def test_tensors_of_two_gpus_are_skipped():
    def run():
        return programs.steps(
            programs.captured(lambda x, y: (x.sin(), y.cos())), programs.ones(), torch.ones(3).cuda(1)
        )

    (skip,) = rows(in_graph_parity(run))
    assert skip["reason"].startswith("multiple devices: ") and skip["counted"]


# What goes wrong at run time


def test_a_function_whose_backward_never_runs_is_stuck():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        seen = in_graph_parity(programs.pending_backward)
    assert actions(seen)[0] == "warmup" and "record" not in actions(seen)
    pending, *counted = rows(seen, "stuck")
    assert "still need their backward" in pending["reason"] and pending["count"] is None
    assert [row["count"] for row in counted] == [4, 8]


def test_a_function_that_is_warmed_up_for_ever_is_stuck():
    seen = in_graph_parity(programs.warmed_up_for_ever)
    assert actions(seen) == ["warmup", "stuck", "stuck"]


def overwritten():
    compiled = programs.captured(lambda x: x.sin() + 1)
    with torch.no_grad():
        first = compiled(programs.ones())
        compiled(programs.ones())
        return first + 1


def test_an_output_that_is_used_after_it_was_overwritten():
    with pytest.raises(RuntimeError, match="has been overwritten") as plain:
        overwritten()
    torch._dynamo.reset()
    with pytest.raises(RuntimeError) as watched, cd.watch() as session, cd.watch():
        overwritten()
    assert str(watched.value) == str(plain.value)
    (invalid,) = rows(session, "invalidated")
    (used,) = rows(session, "overwritten")
    assert (invalid["count"], invalid["function"]) == (1, "<lambda>")
    assert invalid["user_line"] == used["user_line"] and invalid["user_code"] == used["user_code"]
    assert used["reason"].endswith("has been overwritten by a subsequent run.")


def test_a_failing_capture_is_recorded_and_fails_as_without_a_watch():
    _, plain = programs.failing_capture()
    torch._dynamo.reset()
    seen = in_parity(programs.failing_capture)
    _, results = seen.result
    assert [type(r) for r in results] == [type(r) for r in plain]
    assert [str(r) for r in results[1:]] == [str(r) for r in plain[1:]]
    failed = rows(seen, "failed")
    assert actions(seen)[:2] == ["warmup", "failed"]
    assert failed[0]["reason"].startswith(f"{type(results[1]).__name__}: ") and failed[0]["duration_ms"] > 0


def test_a_capture_without_memory_is_recorded():
    """torch does not get over it: it fails once more when there is memory again."""
    seen = in_parity(programs.out_of_memory)
    _, (first, *later) = seen.result
    assert isinstance(first, list) and isinstance(later[0], torch.OutOfMemoryError)
    assert actions(seen)[:2] == ["warmup", "failed"]
    errors = [error for error in later if isinstance(error, Exception)]
    assert [row["reason"].split(":")[0] for row in rows(seen, "failed")] == [type(error).__name__ for error in errors]
    assert rows(seen, "failed")[0]["reason"].startswith("OutOfMemoryError: CUDA out of memory")


@pytest.mark.parametrize("program", programs.ALL, ids=lambda p: p.__name__)
def test_it_computes_the_same_watched_or_not(program):
    plain = to_comparable(program()[-1])
    torch._dynamo.reset()
    with cd.watch(replays=True) as session:
        watched = to_comparable(program()[-1])
    assert watched == plain and len(plain)
    states = {row["status"] for row in session.status() if row["name"] in ("cudagraphs", "cudagraph_skips", "replays")}
    assert states == {"active"}


def to_comparable(result):
    """A result as it can be compared: numbers bit for bit, errors by their kind."""
    if isinstance(result, torch.Tensor):
        return result.detach().cpu().numpy().tobytes()
    return [to_comparable(one) for one in result] if isinstance(result, (list, tuple)) else type(result)


# Replays


def replayed(calls):
    compiled = programs.captured(lambda x: x.sin() + 1)
    x = programs.ones()
    with torch.no_grad():
        for _ in range(calls):
            compiled(x)
    return compiled, x


def test_a_replay_enters_nothing_of_ours_unless_it_is_asked_for():
    with cd.watch() as session, torch.no_grad():
        compiled, x = replayed(4)
        ours = entered(lambda: [compiled(x) for _ in range(1000)])
    assert not ours and actions(session) == ["warmup", "record"]


def test_replays_are_counted_if_it_is_asked_for():
    with cd.watch(replays=True) as session:
        replayed(102)
    assert sum(row["count"] for row in rows(session, "replays")) == 100
    (record,) = rows(session, "record")
    assert {(r["graph_id"], r["function_id"], r["compile_id"]) for r in rows(session, "replays")} == {
        (record["graph_id"], record["function_id"], record["compile_id"])
    }
    assert not rows(session, "eager")


def test_calls_without_a_graph_are_counted_beside_them():
    with cd.watch(replays=True) as session:
        programs.mutated_input()
        torch._dynamo.reset()
        programs.many_graphs()
    eager = rows(session, "eager")
    (limited,) = {row["function_id"] for row in rows(session, "limit")}
    assert sum(row["count"] for row in eager if row["function"] == "function") == 4
    assert sum(row["count"] for row in eager if row["function_id"] == limited and row["function"] != "function") > 0
    details = rows(session, "warmup", "record", "rerecord", "replays", "eager")
    assert sum(row["count"] or 1 for row in details) == 4 + 2 * 12, "every call is counted once"


# The source itself


def test_stop_puts_everything_back_and_what_is_captured_goes_on():
    from torch._inductor import cudagraph_trees

    manager = cudagraph_trees.CUDAGraphTreeManager
    before = dict(vars(manager))
    with cd.watch(replays=True) as session, torch.no_grad():
        compiled, x = replayed(3)
        assert vars(manager) != before
    assert vars(manager) == before and sources.list_hooks() == []
    with torch.no_grad():
        assert torch.allclose(compiled(x), x.sin() + 1)
    assert actions(session) == ["warmup", "record", "replays"]


def test_a_watch_that_begins_between_two_captures_records_the_second():
    compiled = programs.captured(lambda x: x.sin() + 1, dynamic=True)
    programs.steps(compiled, programs.ones(4, 3))
    with cd.watch() as session:
        programs.steps(compiled, programs.ones(5, 3))
    assert actions(session) == ["warmup", "record"]
    assert {(row["compile_id"], row["sizes"], row["function"]) for row in rows(session)} == {("0/0", "5x3", None)}


def test_a_torch_that_lacks_a_place_costs_one_source(monkeypatch):
    from torch._inductor import cudagraph_trees

    with monkeypatch.context() as patch:
        patch.delattr(cudagraph_trees.CUDAGraphTreeManager, "run_eager")
        session = cd.start()
    programs.inference()
    cd.stop()
    state = {row["name"]: (row["status"], row["reason"]) for row in session.status()}
    details = "this torch has no torch._inductor.cudagraph_trees.CUDAGraphTreeManager.run_eager"
    assert state["cudagraphs"] == ("unavailable", details)
    assert state["cudagraph_skips"][0] == "active" and session.cudagraphs.empty


IN_A_THREAD = """
import threading, torch
import compilediag as cd

def work():
    compiled = torch.compile(lambda x: x.sin() + 1, mode="reduce-overhead")
    with torch.no_grad():
        for _ in range(3):
            compiled(torch.ones(64, device="cuda"))

with cd.watch() as session:
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
print(session.cudagraphs["action"].tolist())
"""


def test_a_thread_captures_with_the_watch_begun_in_another(python):
    ran = python("-c", IN_A_THREAD, env={"TORCHINDUCTOR_COMPILE_THREADS": "1"})
    assert ran.returncode == 0 and "Error" not in ran.stderr, ran.stderr
    assert ran.stdout == "['warmup', 'record']\n"
