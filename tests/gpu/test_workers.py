"""Compile workers on a GPU: triton kernels are compiled in processes that torch starts, or where the compile runs."""

import os
import signal

import pytest
import torch
from torch._inductor import config
from torch._inductor.async_compile import AsyncCompile, shutdown_compile_workers

from tests.live.parity.assertion import in_parity, observed


@pytest.fixture(autouse=True)
def caches(fresh_inductor_cache, monkeypatch):
    """Triton's own files are new as well, and no worker of another test is left."""
    monkeypatch.setenv("TRITON_CACHE_DIR", str(fresh_inductor_cache / "triton"))
    shutdown_compile_workers()
    yield
    shutdown_compile_workers()


def two_kernels(x):
    return x.sin() + 1, x.cos().sum(dim=1)


def called():
    torch._dynamo.reset()
    return [y.sum().item() for y in torch.compile(two_kernels)(torch.ones(64, 512, device="cuda"))]


def kernels(seen):
    return seen.session.kernels.query("language == 'triton'")


@pytest.mark.parametrize("method", ["subprocess", "fork", "spawn"])
def test_kernels_are_compiled_in_workers(method):
    with config.patch(worker_start_method=method, compile_threads=2):
        AsyncCompile.wait_pool_ready()
        assert AsyncCompile.use_process_pool()
        seen = in_parity(called)
    found = kernels(seen)
    assert len(found) == found["name"].nunique() >= 1
    assert found["name"].str.startswith("triton_").all()
    assert set(found["where"]) == {method} and set(found["outcome"]) == {"compiled"}
    assert (found["duration_s"] > 0).all() and set(found["compile_id"]) == {"0/0"}


def test_with_one_thread_kernels_are_compiled_where_the_compile_runs():
    with config.patch(compile_threads=1):
        seen = in_parity(called)
    found = kernels(seen)
    assert set(found["where"]) == {"process"} and set(found["worker_pid"]) == {os.getpid()}
    assert (found["duration_s"] > 0).all() and set(found["outcome"]) == {"compiled"}


@pytest.mark.parametrize("threads", [1, 2])
def test_kernels_of_a_cached_graph(threads):
    def run():
        first = called()
        torch._inductor.codecache.PyCodeCache.cache_clear()
        assert called() == first

    with config.patch(compile_threads=threads):
        if threads > 1:
            AsyncCompile.wait_pool_ready()
        seen = in_parity(run)
    found = kernels(seen)
    assert len(found) == 2 * found["name"].nunique()
    again = found.iloc[len(found) // 2 :]
    assert set(again["outcome"]) <= {"cached", "compiled"}
    assert (again["duration_s"].notna() == (again["outcome"] == "compiled")).all()


def test_a_worker_that_is_killed():
    """All workers of a pool are killed before they are asked; torch gives up, watched or not."""

    def run():
        shutdown_compile_workers()
        AsyncCompile.wait_pool_ready()
        assert AsyncCompile.use_process_pool()
        for pid in list(AsyncCompile.process_pool()._processes):
            os.kill(pid, signal.SIGKILL)
        with pytest.raises(Exception) as raised:
            called()
        return type(raised.value)

    with config.patch(worker_start_method="fork", compile_threads=2):
        unwatched = run()
        seen = observed(run)
    assert seen.result is unwatched
    found = kernels(seen)
    assert set(found["outcome"]) == {"failed"} and set(found["where"]) == {"fork"}
    assert found["fail_reason"].str.contains("terminated abruptly|exited unexpectedly").all()
