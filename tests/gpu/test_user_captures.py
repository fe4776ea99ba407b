"""CUDA graphs that a program captures itself."""

import sys

import pytest
import torch

import compilediag as cd
from tests.gpu import graph_programs as programs
from tests.gpu.test_cudagraph_trees import rows

HERE = __file__


@pytest.fixture
def x():
    """An input, and an operation on it that is loaded already: loading can't be captured."""
    x = programs.ones()
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        (x.sin() + 1).sum()
    torch.cuda.synchronize()
    return x


def test_a_capture_says_where_it_was_what_it_holds_and_how_long_it_took(x):
    graph = torch.cuda.CUDAGraph()
    with cd.watch() as session:
        line = sys._getframe().f_lineno + 1
        with torch.cuda.graph(graph):
            y = x.sin() + 1
    graph.replay()
    assert torch.equal(y, x.sin() + 1)
    (capture,) = rows(session)
    assert (capture["action"], capture["backend"], capture["device"]) == ("user_capture", "user", "cuda:0")
    assert (capture["nodes"], capture["user_file"], capture["user_line"]) == (2, HERE, line)
    assert capture["user_code"] == "with torch.cuda.graph(graph):"
    assert capture["duration_ms"] > 0
    segments = torch.cuda.memory_snapshot()
    assert capture["pool_bytes"] == sum(s["total_size"] for s in segments if s["segment_pool_id"] == graph.pool())


def test_the_number_of_nodes_is_that_of_the_graph_which_torch_keeps(x):
    import ctypes

    graph = torch.cuda.CUDAGraph(keep_graph=True)
    with cd.watch() as session, torch.cuda.graph(graph):
        (x.sin() + 1).cos().sum()
    count = ctypes.c_size_t()
    raw = ctypes.c_void_p(graph.raw_cuda_graph())
    assert ctypes.CDLL("libcuda.so.1").cuGraphGetNodes(raw, None, ctypes.byref(count)) == 0
    assert rows(session)[0]["nodes"] == count.value >= 4


def test_capture_begin_and_capture_end_by_hand(x):
    graph, stream = torch.cuda.CUDAGraph(), torch.cuda.Stream()
    with cd.watch(detail="lean") as session, torch.cuda.stream(stream):
        graph.capture_begin()
        x.sin()
        graph.capture_end()
    (capture,) = rows(session)
    assert (capture["action"], capture["nodes"], capture["user_code"]) == ("user_capture", 1, "graph.capture_begin()")


def test_graphed_callables_are_two_captures_of_one_line():
    model = torch.nn.Linear(8, 8, device="cuda")
    with cd.watch() as session:
        torch.cuda.make_graphed_callables(model, (programs.ones(2, 8, requires_grad=True),))
    assert [row["action"] for row in rows(session)] == ["user_capture"] * 2
    assert {row["user_file"] for row in rows(session)} == {HERE}
    assert {row["user_code"].split("(")[0] for row in rows(session)} == {"torch.cuda.make_graphed_callables"}


def capture_and_wait(x):
    with torch.cuda.graph(torch.cuda.CUDAGraph()):
        x.sum().item()


def capture_and_raise(x):
    with torch.cuda.graph(torch.cuda.CUDAGraph()):
        raise ZeroDivisionError("of the user's own")


@pytest.mark.filterwarnings("ignore:The CUDA Graph is empty")
@pytest.mark.parametrize("failing", [capture_and_wait, capture_and_raise])
def test_a_failing_capture_is_recorded_and_fails_as_without_a_watch(x, failing):
    with pytest.raises(Exception) as plain:
        failing(x)
    torch.cuda.synchronize()
    with cd.watch() as session, pytest.raises(Exception) as watched:
        failing(x)
    assert (watched.type, str(watched.value)) == (plain.type, str(plain.value))
    (failed,) = rows(session)
    assert (failed["action"], failed["user_file"]) == ("failed", HERE)
    assert failed["reason"].split(":")[0] in (plain.type.__name__, "AcceleratorError")
    assert torch.ones(2, device="cuda").sum().item() == 2


def test_replays_of_the_programs_own_graphs_are_counted_on_request(x):
    graph = torch.cuda.CUDAGraph()
    with cd.watch(replays=True) as session:
        with torch.cuda.graph(graph):
            x.sin()
        for _ in range(10):
            graph.replay()
    (replays,) = rows(session, "replays")
    assert (replays["count"], replays["backend"], replays["graph_id"]) == (10, "user", None)


def test_the_programs_own_captures_beside_those_of_the_compiler(x):
    with cd.watch() as session:
        programs.inference()
        with torch.cuda.graph(torch.cuda.CUDAGraph()):
            x.sin()
    assert [row["action"] for row in rows(session)] == ["warmup", "record", "user_capture"]
