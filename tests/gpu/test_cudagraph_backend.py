"""CUDA graphs of the backend `cudagraphs`, which captures what dynamo traced as it is."""

import functools

import pytest
import torch

from tests.gpu import graph_programs as programs
from tests.gpu.test_cudagraph_trees import actions, rows
from tests.live.parity.cudagraph_state import in_graph_parity

backend = functools.partial(torch.compile, backend="cudagraphs")


def test_inference_is_warmed_up_and_recorded_under_its_compile_id():
    seen = in_graph_parity(lambda: programs.steps(backend(lambda x: x.sin() + 1), programs.ones()))
    assert actions(seen) == ["warmup", "record"]
    for row in rows(seen):
        assert (row["backend"], row["mode"], row["compile_id"]) == ("cudagraphs", "inference", "0/0")
        assert row["function"] == "<lambda>"
    assert rows(seen, "record")[0]["nodes"] == 2, "a kernel an operation: nothing is fused"


def test_training_is_recorded_forward_and_backward():
    model = torch.nn.Linear(16, 16, device="cuda")

    def run():
        compiled = backend(model)
        for _ in range(4):
            model.zero_grad(set_to_none=True)
            compiled(programs.ones(4, 16)).sum().backward()
        return compiled

    seen = in_graph_parity(run)
    assert [(row["action"], row["mode"]) for row in rows(seen)] == [
        (action, mode) for action in ("warmup", "record") for mode in ("forward", "backward")
    ]


def test_gradients_that_are_accumulated_are_invalidated_and_the_error_passes():
    model = torch.nn.Linear(16, 16, device="cuda")

    def run():
        compiled = backend(model)
        with pytest.raises(RuntimeError, match="has been overwritten"):
            for _ in range(4):
                compiled(programs.ones(4, 16)).sum().backward()
        return compiled

    seen = in_graph_parity(run)
    assert {row["mode"] for row in rows(seen, "invalidated")} == {"backward"}


def constant():
    def function(x):
        counter = torch.tensor(1.0)
        counter.add_(2)
        return x + counter

    return function


@pytest.mark.parametrize(
    ("function", "line"),
    [
        (lambda x: (x.sin() + 1).cpu(), None),
        (lambda x: x + torch.ones(64).to("cuda"), "torch.ones(64)"),
        (constant(), "counter = torch.tensor(1.0)"),
    ],
    ids=["to the host", "from the host", "a constant of the host, mutated"],
)
def test_what_touches_the_host_is_skipped_with_its_line(function, line):
    seen = in_graph_parity(lambda: programs.steps(backend(function), programs.ones()))
    (skip,) = rows(seen)
    assert (skip["action"], skip["counted"], skip["backend"]) == ("skip", True, "cudagraphs")
    assert skip["reason"].startswith("cpu device (")
    if line is None:
        assert skip["user_file"] is None, "torch does not know it"
    else:
        assert skip["user_file"] == __file__ and line in skip["user_code"]


def mutating(x):
    x.add_(1)
    return x * 2


@pytest.mark.parametrize("supported", [False, True], ids=["when it is compiled", "when it runs"])
def test_an_input_that_is_mutated_within_the_graph_is_skipped(supported):
    keep = {"cudagraph_backend_keep_input_mutation": True, "cudagraph_backend_support_input_mutation": supported}
    with torch._dynamo.config.patch(keep):
        seen = in_graph_parity(lambda: programs.steps(backend(mutating), programs.ones()))
    (skip,) = rows(seen)
    assert skip["reason"] == "mutated inputs (1 instances)" and skip["user_code"] == "x.add_(1)"
    assert (skip["backend"], skip["compile_id"]) == ("cudagraphs", "0/0")
    assert (skip["function_id"] is not None) == supported


def test_an_operation_that_can_not_be_captured_is_skipped():
    seen = in_graph_parity(lambda: programs.steps(backend(lambda x: programs.unsafe(x.sin())), programs.ones()))
    (skip,) = rows(seen)
    assert skip["reason"].startswith("incompatible op (") and skip["backend"] == "cudagraphs"


@pytest.mark.parametrize(
    ("function", "size"),
    [(programs.fill_nothing, 20), (mutating, 8), (lambda x: x + torch.arange(8, device="cuda"), 8)],
    ids=["dead fill", "input mutated after the graph", "factory"],
)
def test_what_stays_on_the_gpu_is_recorded(function, size):
    seen = in_graph_parity(lambda: programs.steps(backend(function), torch.ones(size, device="cuda")))
    assert actions(seen) == ["warmup", "record"]


def test_what_is_resized_is_recorded_in_two_graphs():
    seen = in_graph_parity(lambda: programs.steps(backend(programs.resize), torch.empty(0, device="cuda")))
    assert sorted(actions(seen)) == ["record"] * 2 + ["warmup"] * 2
    assert len({row["compile_id"] for row in rows(seen)}) == 2
