"""Tuning of Inductor's own triton kernels: configurations, times, what was taken, and what a cache answered."""

import pandas as pd
import pytest
import torch
from torch._inductor import config
from torch._inductor.codecache import PyCodeCache

import compilediag as cd
from tests.gpu.tuning import pool_is_ready
from tests.live.entered import entered
from tests.live.parity.assertion import in_parity

#: Kernels are compiled in this process, and pointwise ones have more than one configuration.
HERE = {"compile_threads": 1, "max_autotune_pointwise": True}


def transposed_sum(x):
    return (x.t() + x).contiguous()


def matrix(n=256):
    return torch.randn(n, n, device="cuda")


def run(function, *inputs, **options):
    def call():
        with config.patch(HERE | options):
            return torch.compile(function, dynamic=False)(*inputs)

    return call


def rows(seen, stage="benchmark"):
    frame = seen.session.autotune
    return frame[(frame["tuner"] == "triton_heuristics") & (frame["stage"] == stage)]


def lookups(seen):
    frame = seen.session.cache_lookups
    frame = frame[frame["cache"] == "autotune"].sort_values("time")
    return list(frame["outcome"])


def test_the_configurations_of_a_pointwise_kernel(fresh_inductor_cache):
    x = matrix()
    seen = in_parity(run(transposed_sum, x))
    assert torch.equal(seen.result, transposed_sum(x))
    timed = rows(seen)
    assert len(timed) > 2 and timed["run_id"].nunique() == 1 and timed["op"].str.startswith("triton_poi").all()
    assert timed["parameters"].map(lambda p: {"XBLOCK", "YBLOCK", "num_warps", "num_stages"} <= set(p)).all()
    assert list(timed["is_winner"]) == list(timed["time_ms"] == timed["time_ms"].min())
    assert timed["precompile_s"].gt(0).all() and timed["benchmark_s"].gt(0).all()
    assert set(timed["device"]) == {"cuda:0"} and set(timed["compile_id"]) == {"0/0"}
    assert timed["inputs"].iloc[0][0] == "float32[256, 256] strides [256, 1] cuda:0"
    assert seen.counters["inductor"]["benchmarking.InductorBenchmarker.benchmark_gpu"] == len(timed)
    assert lookups(seen) == ["miss", "saved"]


def test_the_configurations_of_a_reduction(fresh_inductor_cache):
    x = matrix(2048)
    seen = in_parity(run(lambda x: x.sum(1), x))
    timed = rows(seen)
    assert len(timed) > 2 and timed["parameters"].map(lambda p: "R0_BLOCK" in p).all()
    assert timed["is_winner"].sum() == 1 and timed["time_ms"].gt(0).all()


def test_a_tuned_configuration_comes_from_the_cache_without_its_time(fresh_inductor_cache):
    x = matrix()
    first = in_parity(run(transposed_sum, x))
    torch._dynamo.reset()
    PyCodeCache.cache_clear()  # As in a later process: the kernel that this one has is tuned already.
    again = in_parity(run(transposed_sum, x, fx_graph_cache=False))
    taken = rows(again, "cached")
    assert len(again.session.autotune) == len(taken) == 1 and set(taken["from_cache"]) == {"local"}
    best = rows(first)[rows(first)["is_winner"]]["parameters"].iloc[0]
    assert taken["parameters"].iloc[0] == best and taken["is_winner"].all() and taken["time_ms"].isna().all()
    assert lookups(again) == ["hit"]


def test_kernels_of_the_pool_and_of_the_fx_graph_cache(fresh_inductor_cache):
    assert pool_is_ready()
    x, options = matrix(), {"compile_threads": config.compile_threads}
    first = in_parity(run(transposed_sum, x, **options))
    assert len(rows(first)) > 2 and rows(first)["precompile_s"].gt(0).all()
    assert lookups(first) == ["miss", "saved"]
    torch._dynamo.reset()
    again = in_parity(run(transposed_sum, x, **options))
    assert again.counters["inductor"]["fxgraph_cache_hit"] == 1
    assert len(rows(again, "cached")) == 1 and lookups(again) == ["hit"]


def test_coordinate_descent_is_a_stage_of_the_same_run(fresh_inductor_cache):
    x = matrix()
    seen = in_parity(run(lambda x: x.sin() * 3, x, coordinate_descent_tuning=True, max_autotune_pointwise=False))
    walked = rows(seen, "coordinate_descent")
    assert seen.counters["inductor"]["coordesc_tuning_bench"] == len(walked) > 0
    # Where no step was faster, the configuration that it began with is taken, at its earlier time.
    taken = pd.concat([walked[walked["is_winner"]], rows(seen, "cached")])
    assert len(taken) == 1 and set(walked["run_id"]) == set(rows(seen)["run_id"]) == set(taken["run_id"])
    assert taken["time_ms"].iloc[0] <= rows(seen)["time_ms"].min()


def test_configurations_that_spill_registers_are_recorded_as_failed(fresh_inductor_cache):
    """Sine needs room on the stack, which counts as spilling; a threshold that low passes over all of them."""
    seen = in_parity(run(lambda x: x.sin() + x.t().sin(), matrix(), **{"triton.spill_threshold": 0}))
    failed = rows(seen)[rows(seen)["fail_reason"].notna()]
    assert len(failed) > 0 and failed["fail_reason"].str.startswith("timed as infinite: register spilling").all()
    assert failed["time_ms"].isna().all()


def test_a_users_kernel_in_what_is_compiled_is_tuned_by_inductor(fresh_inductor_cache):
    pytest.importorskip("triton")
    from tests.gpu import triton_kernels

    x = matrix(512)
    seen = in_parity(run(triton_kernels.launch_tile, x))
    failed = rows(seen, "precompile")
    assert list(failed["parameters"].map(lambda p: p["TILE"])) == [256]
    assert "out of resource" in failed["fail_reason"].iloc[0] and not failed["is_winner"].any()
    timed = rows(seen)[rows(seen)["op"].str.startswith("square_tile")]
    assert sorted(timed["parameters"].map(lambda p: p["TILE"])) == [16, 32] and timed["is_winner"].sum() == 1


def test_without_the_server_of_the_remote_cache_all_goes_on_as_it_does_unwatched(fresh_inductor_cache, monkeypatch):
    """Nobody listens there, or the package redis is not installed: torch gives the remote tier up."""
    monkeypatch.setenv("TORCHINDUCTOR_REDIS_HOST", "127.0.0.1")
    monkeypatch.setenv("TORCHINDUCTOR_REDIS_PORT", "1")
    x = matrix()
    seen = in_parity(run(transposed_sum, x, autotune_remote_cache=True))
    assert torch.equal(seen.result, transposed_sum(x)) and rows(seen)["is_winner"].sum() == 1
    looked = seen.session.cache_lookups.query("cache == 'autotune'")
    assert {*zip(looked["tier"], looked["outcome"], strict=True)} >= {("remote", "failed"), ("local", "saved")}
    assert looked[looked["outcome"] == "failed"]["reason"].str.contains("redis|Redis").all()


@pytest.mark.parametrize("in_pool", [False, True], ids=["in this process", "in the pool"])
def test_a_configuration_that_does_not_assemble_is_recorded_wherever_it_was_compiled(fresh_inductor_cache, in_pool):
    """A process of the pool gives back what it could compile, and no more than the number of all."""
    pytest.importorskip("triton")
    from tests.gpu import triton_kernels

    assert not in_pool or pool_is_ready()
    x, options = matrix().view(-1), {"compile_threads": config.compile_threads} if in_pool else {}
    seen = in_parity(run(lambda x: triton_kernels.launch(triton_kernels.small_blocks_assemble, x), x, **options))
    assert torch.equal(seen.result, x * 2)
    failed = rows(seen, "precompile")
    assert len(failed) == 1 and failed["op"].iloc[0].startswith("small_blocks_assemble")
    details = failed["fail_reason"].iloc[0]
    assert details.startswith("did not compile in a process" if in_pool else "PTXASError")


@pytest.mark.parametrize("options", [{}, {"coordinate_descent_tuning": True}], ids=["tuned", "descended"])
def test_a_kernel_that_is_tuned_is_launched_past_us(fresh_inductor_cache, options):
    x = matrix()
    with cd.watch(), config.patch(HERE | options):
        function = torch.compile(lambda x: x.sum(1) + 1)
        function(x)
        assert not entered(lambda: function(x))
