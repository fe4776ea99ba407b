"""What is not captured in a CUDA graph: on the CPU nothing is, and torch counts it, mostly without a word."""

import collections
import threading

import pytest
import torch

from .assertion import in_parity
from .cudagraph_state import in_graph_parity


def skips(seen):
    frame = seen.session.cudagraphs
    return frame[frame["action"] == "skip"].to_dict("records")


def calls(function, n=2, **options):
    compiled = torch.compile(function, **options)
    return lambda: [compiled(torch.ones(3)) for _ in range(n)]


def test_a_graph_without_a_gpu_is_skipped_without_a_word_also_from_the_cache(fresh_inductor_cache):
    def run():
        with torch._functorch.config.patch(enable_autograd_cache=False):
            for _ in range(2):
                torch._dynamo.reset()
                torch.compile(lambda x: x.sin() + 1, mode="reduce-overhead")(torch.ones(3))

    seen = in_graph_parity(run)
    assert seen.counters["inductor"]["cudagraph_skips"] == seen.counters["inductor"]["fxgraph_cache_hit"] + 1 == 2
    for skip in skips(seen):
        assert (skip["reason"], skip["counted"], skip["mode"]) == ("no CUDA device in the graph", True, "inference")
        assert (skip["compile_id"], skip["function"], skip["backend"]) == ("0/0", "<lambda>", "trees")
    assert seen.session.plan().leading_cost.kind == "not_captured"


def test_of_a_forward_that_is_skipped_the_backward_is_not_asked(fresh_inductor_cache):
    def run():
        compiled = torch.compile(lambda x: x.sin().sum(), mode="reduce-overhead")
        compiled(torch.ones(3, requires_grad=True)).backward()

    seen = in_graph_parity(run)
    assert [skip["mode"] for skip in skips(seen)] == ["forward"]


@pytest.mark.parametrize("detail", ["lean", "full"])
def test_the_backend_says_which_line_uses_a_tensor_of_the_cpu(detail):
    def function(x):
        return x.cos() + 1

    seen = in_graph_parity(calls(function, backend="cudagraphs"), detail)
    (skip,) = skips(seen)
    assert skip["reason"].startswith("cpu device (")
    assert (skip["backend"], skip["mode"], skip["function"]) == ("cudagraphs", "inference", "function")
    assert (skip["user_file"], skip["user_code"]) == (__file__, "return x.cos() + 1")
    assert skip["user_line"] == function.__code__.co_firstlineno + 1


def test_the_backend_asks_again_for_each_graph():
    def function(x):
        y = x.sin()
        torch._dynamo.graph_break()
        return y.cos()

    seen = in_graph_parity(calls(function, backend="cudagraphs"))
    assert len(skips(seen)) == seen.counters["inductor"]["cudagraph_skips"] == 2


@pytest.mark.since_torch("2.13", "torch takes another thread's tracing for its own, and fails")
def test_two_threads_that_compile_at_once_are_distinguished(settings_put_back):
    def work(function):
        for size in range(2, 5):
            torch.compile(function, backend="cudagraphs", dynamic=False)(torch.ones(size))

    def one(x):
        return x.sin() + 1

    def other(x):
        return x.cos() * 2

    def run():
        threads = [threading.Thread(target=work, args=(function,)) for function in (one, other)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    seen = in_parity(run)
    details = collections.Counter((skip["function"], skip["user_code"]) for skip in skips(seen))
    assert details == {("one", "return x.sin() + 1"): 3, ("other", "return x.cos() * 2"): 3}


def test_nobody_is_skipped_where_nothing_is_to_be_captured(fresh_inductor_cache):
    seen = in_parity(calls(lambda x: x.sin() + 1))
    assert seen.session.cudagraphs.empty


@pytest.mark.since_torch("2.13", "no option forbids a skip")
def test_a_skip_that_the_user_forbids_is_recorded_and_fails_as_without_a_watch():
    def run():
        forbidden = torch._inductor.config.patch({"triton.cudagraph_or_error": True})
        with forbidden, pytest.raises(Exception, match="cpu device"):
            calls(lambda x: x.sin() + 1, backend="cudagraphs")()

    assert len(skips(in_parity(run))) == 1


@pytest.mark.since_torch("2.13", "there is no such annotation")
def test_an_annotation_of_the_users_is_a_skip(fresh_inductor_cache):
    @torch._dynamo.override_cudagraphs(fwd=False)
    def function(x):
        return x.sin() + 1

    seen = in_graph_parity(calls(function, mode="reduce-overhead"))
    assert [skip["reason"] for skip in skips(seen)] == ["override_cudagraphs annotation"]


BEGUN_ELSEWHERE = """
import sys, threading, torch
import compilediag as cd

with cd.watch() as session:
    assert "torch._inductor.cudagraph_trees" not in sys.modules, "torch imports it in the thread that captures"
    compiled = torch.compile(lambda x: x.cos(), backend="cudagraphs")
    thread = threading.Thread(target=compiled, args=(torch.ones(3),))
    thread.start()
    thread.join()
    assert "torch._inductor.cudagraph_trees" in sys.modules
assert not hasattr(sys.modules["torch._inductor.cudagraph_trees"].local, "tree_manager_containers")
print(session.cudagraphs["action"].tolist(), sum("WhenImported" in repr(finder) for finder in sys.meta_path))
"""


def test_a_watch_does_not_import_what_belongs_to_the_thread_that_imports_it(python):
    ran = python("-c", BEGUN_ELSEWHERE)
    assert (ran.stdout, ran.returncode) == ("['skip'] 0\n", 0), ran.stderr
