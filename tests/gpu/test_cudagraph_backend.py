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


SCENARIOS = {
    "to the host": (lambda x: (x.sin() + 1).cpu(), (64,)),
    "from the host": (lambda x: x + torch.ones(64).to("cuda"), (64,)),
    "a constant of the host, mutated": (constant(), (64,)),
}


@pytest.mark.parametrize("name", SCENARIOS)
def test_what_touches_the_host_is_skipped_with_its_line(name):
    function, sizes = SCENARIOS[name]
    seen = in_graph_parity(lambda: programs.steps(backend(function), programs.ones(*sizes)))
    (skip,) = rows(seen)
    assert (skip["action"], skip["counted"], skip["backend"]) == ("skip", True, "cudagraphs")
    assert skip["reason"].startswith("cpu device (") and skip["user_file"] == __file__


def mutating(x):
    x.add_(1)
    return x * 2


def test_a_mutated_input_is_skipped_where_it_is_not_supported():
    with torch._dynamo.config.patch(cudagraph_backend_support_input_mutation=False):
        seen = in_graph_parity(lambda: programs.steps(backend(mutating), programs.ones()))
    (skip,) = rows(seen)
    assert skip["reason"] == "mutated inputs (1 instances)" and skip["user_code"] == "x.add_(1)"


def test_an_operation_that_can_not_be_captured_is_skipped():
    seen = in_graph_parity(lambda: programs.steps(backend(lambda x: programs.unsafe(x.sin())), programs.ones()))
    (skip,) = rows(seen)
    assert skip["reason"].startswith("incompatible op (") and skip["backend"] == "cudagraphs"


def resized(x):
    y = x.clone()
    y.resize_(20)
    return y.fill_(2)


def dead_fill(x):
    y = x.clone()
    nothing = y[:0]
    y.fill_(2)
    nothing.fill_(3)
    return y, nothing


@pytest.mark.parametrize(
    ("function", "size"),
    [(resized, 0), (dead_fill, 20), (mutating, 8), (lambda x: x + torch.arange(8, device="cuda"), 8)],
    ids=["resized", "dead fill", "mutated input", "factory"],
)
def test_what_stays_on_the_gpu_is_recorded(function, size):
    seen = in_graph_parity(lambda: programs.steps(backend(function), torch.ones(size, device="cuda")))
    assert actions(seen) == ["warmup", "record"]
