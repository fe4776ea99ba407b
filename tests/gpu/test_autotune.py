"""Autotuning of operators on a GPU: all choices of every operator that Inductor tunes, and what becomes of them."""

import os
import signal
import threading
import time

import pytest
import torch
from torch._inductor import autotune_process, config

import compilediag as cd
from tests.gpu.tuning import GEMM, GOOD, TOO_BIG, pool_is_ready, templates, tuned
from tests.live.parity.assertion import in_parity

SIZE = 256
TOO_MUCH = "out of resource"


def square(*sizes):
    return torch.randn(*(sizes or (SIZE, SIZE)), device="cuda")


def mm(x, y):
    return x @ y


def rows(seen):
    frame = seen.session.autotune
    return frame[frame["tuner"] == "select_algorithm"]


def winners(seen, stage="benchmark"):
    frame = rows(seen)
    return frame[frame["is_winner"].fillna(False) & (frame["stage"] == stage)]


def lookups(seen):
    frame = seen.session.cache_lookups
    return list(frame[(frame["cache"] == "autotune") & frame["key"].str.startswith("mm:", na=False)]["outcome"])


def same(got, expected):
    return torch.allclose(got, expected, atol=0.1, rtol=0.1)


def test_every_choice_of_mm_with_its_time_its_compile_and_the_winner(fresh_inductor_cache):
    x, y = square(), square()
    seen = in_parity(lambda: tuned(mm, x, y))
    assert same(seen.result, x @ y)
    timed = rows(seen)
    assert list(timed["choice_kind"]) == ["extern", "triton", "triton"] and set(timed["op"]) == {"mm"}
    assert timed["time_ms"].gt(0).all() and set(timed["device"]) == {"cuda:0"}
    assert timed["inputs"].iloc[0] == [f"float32[{SIZE}, {SIZE}] strides [{SIZE}, 1] cuda"] * 2
    assert timed["parameters"].iloc[1]["BLOCK_M"] == 64 and timed["parameters"].iloc[2]["num_warps"] == 4
    assert len(winners(seen)) == 1 and winners(seen)["time_ms"].iloc[0] == timed["time_ms"].min()
    assert timed["precompile_s"].gt(0).all() and timed["threads"].gt(0).all() and timed["benchmark_s"].gt(0).all()
    assert list(timed["compile_s"].notna()) == [False, True, True]
    assert seen.counters["inductor"]["select_algorithm_num_precompiles"] == 2
    assert seen.counters["inductor"]["benchmarking.InductorBenchmarker.benchmark_gpu"] == len(timed)
    assert lookups(seen) == ["miss"]


@pytest.mark.parametrize("threads", [1, 2], ids=["in this process", "in the pool, if it is ready"])
def test_a_choice_that_exceeds_shared_memory_is_recorded_with_the_reason(fresh_inductor_cache, threads):
    x, y = square(), square()
    with config.patch(compile_threads=threads):
        seen = in_parity(lambda: tuned(mm, x, y, sizes=(*GOOD, TOO_BIG)))
    failed = rows(seen)[rows(seen)["fail_reason"].notna()]
    assert len(failed) == 1 and failed["parameters"].iloc[0]["BLOCK_K"] == 128
    assert TOO_MUCH in failed["fail_reason"].iloc[0] and failed["time_ms"].isna().all()
    assert not failed["is_winner"].any() and len(winners(seen)) == 1
    if threads == 1:
        assert set(failed["stage"]) == {"precompile"}
        assert seen.counters["inductor"]["select_algorithm_num_precompilation_exceptions"] == 1


def test_compiles_of_the_pool_are_waited_for_and_counted(fresh_inductor_cache):
    assert pool_is_ready()
    x, y = square(), square()
    seen = in_parity(lambda: tuned(mm, x, y))
    assert rows(seen)["compile_s"].gt(0).sum() == 2 and set(rows(seen)["threads"]) == {config.compile_threads}


def product_of_three(x, y):
    return torch.mm(x, y) + torch.mm(y, x)


def cat_of_addmm(x, y):
    return torch.cat([torch.addmm(x[0], x, y), torch.addmm(y[0], y, x)])


OPERATORS = {
    "addmm": (lambda x, y: torch.addmm(x[0], x, y), {"addmm"}),
    "bmm": (lambda x, y: torch.bmm(x.view(4, -1, SIZE), y.view(4, SIZE, -1)), {"bmm"}),
    "mm_plus_mm": (product_of_three, {"mm_plus_mm"}),
    "cat of addmm": (cat_of_addmm, {"addmm"}),
    "transposed": (lambda x, y: x.t() @ y, {"mm"}),
    "empty": (lambda x, y: x[:0] @ y, set()),
}


@pytest.mark.parametrize("name", OPERATORS)
def test_the_other_operators_are_tuned_as_torch_counts(fresh_inductor_cache, name):
    function, ops = OPERATORS[name]
    x, y = square(), square()
    with config.patch({"test_configs.max_mm_configs": 2}):
        seen = in_parity(lambda: tuned(function, x, y))
    assert same(seen.result, function(x, y))
    assert set(rows(seen)["op"]) == ops and len(winners(seen)) == rows(seen)["run_id"].nunique()
    if name == "transposed":
        assert rows(seen)["inputs"].iloc[0][0] == f"float32[{SIZE}, {SIZE}] strides [1, {SIZE}] cuda"


@pytest.mark.parametrize("kernel", [1, 3])
def test_convolutions_are_tuned(fresh_inductor_cache, kernel):
    x, weight = square(2, 32, 16, 16), square(32, 32, kernel, kernel)
    with config.patch({"test_configs.max_mm_configs": 2}):
        seen = in_parity(lambda: tuned(lambda x, w: torch.nn.functional.conv2d(x, w), x, weight))
    assert same(seen.result, torch.nn.functional.conv2d(x, weight))
    assert set(rows(seen)["op"]) <= {"convolution", "mm", "addmm"} and len(rows(seen)) > 1
    assert len(winners(seen)) == rows(seen)["run_id"].nunique()


def test_an_epilogue_decides_the_winner_and_fused_kernels_have_times_of_their_own(fresh_inductor_cache, monkeypatch):
    from torch._inductor.scheduler import Scheduler

    expected, genuine = [], Scheduler.benchmark_codegened_module

    def listening(*args, **kwargs):
        timed = genuine(*args, **kwargs)
        expected.append(timed[0])
        return timed

    monkeypatch.setattr(Scheduler, "benchmark_codegened_module", listening)
    x, y = square(), square()
    with config.patch(max_epilogue_benchmarked_choices=2):
        seen = in_parity(lambda: tuned(lambda x, y: (x @ y).relu() + 1, x, y))
    assert same(seen.result, (x @ y).relu() + 1)
    fused = rows(seen).query("stage == 'fusion'")
    assert list(fused["time_ms"]) == pytest.approx(expected) and set(fused["choice_kind"]) <= {"triton"}
    assert set(fused["run_id"]) <= set(rows(seen).query("stage == 'benchmark'")["run_id"])
    assert len(winners(seen)) == 1 and set(fused[fused["is_winner"]]["choice"]) <= set(winners(seen)["choice"])


def test_sizes_that_vary_are_tuned_at_their_hints(fresh_inductor_cache):
    x, y = square(), square()
    torch._dynamo.mark_dynamic(x, 0)

    def run():
        with config.patch(GEMM), templates(*GOOD):
            return torch.compile(mm)(x, y)

    seen = in_parity(run)
    assert same(seen.result, x @ y) and len(winners(seen)) == 1
    assert rows(seen)["inputs"].iloc[0][0] == f"float32[{SIZE}, {SIZE}] strides [{SIZE}, 1] cuda"


def test_splits_of_a_long_sum_are_choices_too(fresh_inductor_cache):
    x, y = square(32, 4096), square(4096, 32)
    seen = in_parity(lambda: tuned(mm, x, y, **{"triton.num_decompose_k_splits": 2}))
    assert "subgraph" in set(rows(seen)["choice_kind"]) and len(winners(seen)) == 1


def test_forward_and_backward_are_tuned_under_their_compile(fresh_inductor_cache):
    layer = torch.nn.Linear(SIZE, SIZE, bias=False, device="cuda")

    def run():
        with config.patch(GEMM), templates(*GOOD):
            torch.compile(layer)(square()).sum().backward()

    seen = in_parity(run)
    assert rows(seen)["run_id"].nunique() == 2 and set(rows(seen)["compile_id"]) == {"0/0"}


def test_what_was_timed_before_is_answered_from_the_local_cache(fresh_inductor_cache):
    x, y = square(), square()
    first = in_parity(lambda: tuned(mm, x, y))
    torch._dynamo.reset()
    again = in_parity(lambda: tuned(mm, x, y, fx_graph_cache=False))
    assert lookups(again) == ["hit"] and set(rows(again)["from_cache"]) == {"local"}
    assert list(rows(again)["time_ms"]) == list(rows(first)["time_ms"])
    assert again.counters["inductor"]["generated_module_cache_hit"] == 2


def test_when_nothing_compiles_torch_says_so(fresh_inductor_cache):
    x, y = square(), square()
    bigger = (256, 128, 128, 5, 8)

    def run():
        with pytest.raises(Exception, match="NoValidChoicesError"):
            alone = {"max_autotune_gemm_backends": "TRITON", "compile_threads": 1, "fx_graph_cache": False}
            tuned(mm, x, y, sizes=(TOO_BIG, bigger), **alone)

    seen = in_parity(run)
    assert len(rows(seen)) == 2 and rows(seen)["fail_reason"].str.contains(TOO_MUCH).all()
    assert not rows(seen)["is_winner"].any()


# Other processes


@pytest.fixture
def tuner():
    """The pool of processes that time choices."""
    with config.patch(autotune_in_subproc=True):
        pool = autotune_process.get_tuning_process_pool()
        yield pool
    pool.shutdown()
    autotune_process.get_tuning_process_pool.cache_clear()


@pytest.mark.filterwarnings("ignore:Failed to benchmark choice")
def test_templates_are_timed_in_another_process_and_one_that_fails_there_says_why(fresh_inductor_cache, tuner):
    x, y = square(), square()
    seen = in_parity(lambda: tuned(mm, x, y, sizes=(*GOOD, TOO_BIG)))
    timed = rows(seen).query("stage == 'benchmark'").set_index("choice_kind")
    assert not timed.loc["extern", "in_subprocess"] and timed.loc["triton", "in_subprocess"].all()
    assert set(timed["tuner_pid"].dropna()) == {tuner.processes[0].process.pid}
    failed = rows(seen)[rows(seen)["fail_reason"].notna()]
    assert len(failed) == 1 and TOO_MUCH in failed["fail_reason"].iloc[0]


@pytest.mark.filterwarnings("ignore:Failed to benchmark choice")
def test_a_tuner_that_is_killed_costs_one_choice_and_is_started_anew(fresh_inductor_cache, tuner):
    x, y = square(), square()
    process = tuner.processes[0].process
    os.kill(process.pid, signal.SIGSTOP)

    def kill():
        while not tuner.process_queue.empty():
            time.sleep(0.01)
        time.sleep(0.5)  # The process is taken out of the queue before it is asked.
        process.kill()

    killer = threading.Thread(target=kill)
    killer.start()
    seen = in_parity(lambda: tuned(mm, x, y))
    killer.join()
    assert same(seen.result, x @ y)
    lost = rows(seen)[rows(seen)["fail_reason"].notna()]
    assert list(lost["fail_reason"]) == [f"the tuner, process {process.pid}, was ended by signal 9"]
    pids = rows(seen)["tuner_pid"].dropna()
    assert len(pids) == 2 and pids.nunique() == 2 and len(winners(seen)) == 1


def test_a_tuner_for_each_device_says_which_one_it_used(fresh_inductor_cache):
    with config.patch(autotune_in_subproc=True, autotune_multi_device=True):
        pool = autotune_process.get_tuning_process_pool()
        try:
            x, y = square(), square()
            seen = in_parity(lambda: tuned(mm, x, y))
        finally:
            pool.shutdown()
            autotune_process.get_tuning_process_pool.cache_clear()
    used = set(rows(seen).query("in_subprocess")["device"])
    assert used and used <= {f"cuda:{n}" for n in range(torch.cuda.device_count())}


def test_a_pipelined_tuning_is_recorded_when_its_times_are_available(fresh_inductor_cache):
    x, y = square(), square()
    options = {"pipeline_max_autotune_gemm": True, "benchmark_epilogue_fusion": False}
    try:
        seen = in_parity(lambda: tuned(mm, x, y, **options))
    finally:
        autotune_process.AutotuneProcessPool.shutdown_instance()
    assert same(seen.result, x @ y) and len(rows(seen)) == 3
    assert rows(seen)["in_subprocess"].all() and rows(seen)["time_ms"].gt(0).all() and len(winners(seen)) == 1
    assert set(rows(seen)["compile_id"]) == {"0/0"}


# Bad luck


def test_choices_that_run_out_of_memory_say_so(fresh_inductor_cache):
    """There is room for the inputs, but not for what is written over the GPU's cache before each call."""
    x, y = square(), square()
    tuned(mm, x, y)  # What is allocated once is.
    torch._dynamo.reset()
    torch.cuda.empty_cache()
    room = torch.cuda.memory_reserved() + (8 << 20)
    torch.cuda.set_per_process_memory_fraction(room / torch.cuda.get_device_properties(0).total_memory)

    def run():
        with pytest.raises(Exception, match="NoValidChoicesError"):
            tuned(mm, x, y, fx_graph_cache=False, autotune_local_cache=False)

    try:
        seen = in_parity(run)
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)
    assert len(rows(seen)) == 3 and rows(seen)["fail_reason"].str.startswith("OutOfMemoryError: CUDA out of mem").all()
    assert not rows(seen)["is_winner"].any()


# What it costs


def test_times_that_a_tool_asks_for_again_are_a_stage_of_their_own(fresh_inductor_cache):
    from torch._inductor.select_algorithm import add_feedback_saver, clear_feedback_savers

    add_feedback_saver(lambda times, name, inputs, choices, again, *rest: again())
    x, y = square(), square()
    try:
        seen = in_parity(lambda: tuned(mm, x, y))
    finally:
        clear_feedback_savers()
    assert seen.counters["inductor"]["select_algorithm_autotune"] == 2
    assert list(rows(seen).query("stage == 'profile'")["choice_kind"]) == ["extern", "triton", "triton"]


def test_a_whole_max_autotune_compile_is_watched_and_its_cost_is_known(fresh_inductor_cache):
    # benchmarks/functions.py has the bound of that cost.
    x, y = square(), square()
    quiet = {name: GEMM[name] for name in ("max_autotune_report_choices_stats", "autotune_num_choices_displayed")}
    with cd.watch(detail="lean") as session, config.patch(quiet | {"test_configs.max_mm_configs": 6}):
        torch.compile(lambda x, y: (x @ y).relu().sum(1), mode="max-autotune-no-cudagraphs")(x, y)
    own = sum(row["overhead_s"] for row in session.status() if row["name"] in session_tuners())
    assert len(session.autotune) > 6 and own > 0


def session_tuners():
    return {"select_algorithm", "triton_heuristics", "triton_autotune"}
