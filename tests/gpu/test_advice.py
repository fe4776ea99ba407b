"""Advice about CUDA graphs, followed: a program has a finding, the changed one has none and computes the same."""

import pytest
import torch

import compilediag as cd
from tests.gpu.graph_programs import (
    DEVICE,
    captured,
    copies,
    many_graphs,
    ones,
    steps,
    two_graphs,
    unsafe,
    unsafe_operation,
    waits,
)

patched = torch._inductor.config.patch


@pytest.fixture(autouse=True)
def whole_graphs():
    """AOTAutograd's cache off, and graphs that are not cut: a part on the CPU is then a skip on every version."""
    with torch._functorch.config.patch(enable_autograd_cache=False), patched(graph_partition=False):
        yield


def watched(program):
    """What a program computed or raised, and the CUDA graph findings on it."""
    torch._dynamo.reset()
    torch.manual_seed(0)
    try:
        with cd.watch() as session:
            result = program()
    except RuntimeError as error:  # It leaves the watch, which then records that an overwritten output was used.
        result = error
    return result, {f.rule: f for f in session.findings() if f.rule.startswith("cudagraph_")}, session


def check_change(rule, before, after, is_captured=True):
    """`before` has a finding of `rule`, `after` has no finding at all, and both compute the same."""
    first, found, _ = watched(before)
    assert rule in found, sorted(found)
    second, left, session = watched(after)
    assert left == {}
    assert ("record" in set(session.cudagraphs["action"])) == is_captured
    if not isinstance(first, RuntimeError):
        torch.testing.assert_close(second, first)
    return found[rule]


# Skips


def mutate(x):
    x.add_(1)
    return x * 2


def return_new(x):
    return (x + 1) * 2


def test_a_mutated_input_is_returned_as_a_new_tensor():
    found = check_change(
        "cudagraph_skip",
        lambda: steps(captured(mutate), ones())[1][0],
        lambda: steps(captured(return_new), ones())[1][0],
    )
    assert "Return a new tensor" in found.suggestion


def test_a_mutated_cache_is_marked_as_static():
    def call(mark):
        cache, function = ones(), captured(mutate)
        if mark:
            torch._dynamo.mark_static_address(cache)
        return steps(function, cache, n=4)[1]

    found = check_change("cudagraph_skip", lambda: call(False), lambda: call(True))
    assert "mark_static_address(x)" in found.suggestion


def test_a_tensor_of_the_cpu_is_moved_before_the_call():
    def add(x, y):
        return (x.sin() + y.to(DEVICE)).cos()

    found = check_change(
        "cudagraph_skip",
        lambda: steps(captured(add), ones(), torch.ones(64))[1],
        lambda: steps(captured(add), ones(), ones())[1],
    )
    assert "move it there before the call" in found.suggestion


def test_boolean_indexing_becomes_where():
    def fill(x):
        y = x.clone()
        y[y > 0] = 3.0
        return y + 1

    def choose(x):
        return torch.where(x > 0, 3.0, x) + 1

    with torch.no_grad():
        result, found, _ = watched(lambda: steps(captured(fill), ones())[1])
    if "cudagraph_skip" not in found:
        pytest.skip("this torch captures boolean indexing")
    second, left, _ = watched(lambda: steps(captured(choose), ones())[1])
    assert left == {}
    torch.testing.assert_close(second, result)


def test_an_operation_that_is_not_captured_runs_between_two_functions():
    def apart(x):
        return captured(torch.cos)(unsafe(captured(torch.sin)(x)))

    found = check_change("cudagraph_skip", lambda: unsafe_operation()[1], lambda: steps(apart, ones())[1])
    assert found.suggestion.startswith("Move this operator out of the compiled function")


def test_an_operation_that_waits_for_the_gpu_runs_between_two_functions():
    def apart(x):
        return captured(torch.cos)(waits(captured(torch.sin)(x)))

    found = check_change(
        "cudagraph_failed",
        lambda: steps(captured(lambda x: waits(x.sin()).cos()), ones()),
        lambda: steps(apart, ones())[1],
    )
    assert "something in the function waits for the GPU" in found.suggestion


# Captures again, sizes, paths


def test_what_another_graph_made_is_passed_as_a_copy():
    found = check_change("cudagraph_limit", lambda: many_graphs()[2], lambda: many_graphs(pass_on=torch.clone)[2])
    assert "pass x.clone(), which is copied" in found.suggestion


def test_outputs_are_freed_before_the_next_call():
    found = check_change(
        "cudagraph_rerecord",
        lambda: two_graphs(lambda step: (0, [[], [1], [2], [3]][step // 4]), n=16)[2],
        lambda: two_graphs(lambda step: (0, []), n=16)[2],
    )
    assert found.suggestion.startswith("Free the outputs before the next call")


def test_a_graph_after_several_others_begins_a_step():
    def call(begin):
        functions = (
            lambda x: x + 1,
            lambda x: x + 2,
            lambda x: x + 3,
            lambda x: x + 4,
            lambda x: x + 5,
            lambda x: x + 6,
        )
        others, last, found = [captured(f) for f in functions], captured(lambda x: x * 3), []
        with torch.no_grad():
            for other in others * 3:
                torch.compiler.cudagraph_mark_step_begin()
                before = other(ones())
                if begin:
                    before = before.clone()
                    torch.compiler.cudagraph_mark_step_begin()
                found.append(copies(last(ones()) + before))
        return found

    found = check_change("cudagraph_paths", lambda: call(False), lambda: call(True))
    assert "cudagraph_mark_step_begin() at the start of each step" in found.suggestion


def test_a_parameter_keeps_its_tensor():
    def call(in_place):
        torch.manual_seed(0)
        model = torch.nn.Linear(16, 16, device=DEVICE)
        function, found = captured(model), []
        # All of them stay alive: torch replays the earlier capture if a parameter gets the memory of an earlier one.
        weights = [torch.full((16, 16), float(n), device=DEVICE) for n in range(4)]
        for new in weights:
            if in_place:
                model.weight.data.copy_(new)
            else:
                model.weight.data = new
            found += steps(function, ones(4, 16), n=3)[1]
        return found

    found = check_change("cudagraph_rerecord", lambda: call(False), lambda: call(True))
    assert "p.data.copy_(new)" in found.suggestion


def call_with_sizes(pad):
    function, found = captured(lambda x: x.sin() + 1, dynamic=True), []
    for size in (4, 5, 6, 7, 8):
        x = ones(size, 3)
        if pad:
            x = torch.nn.functional.pad(x, (0, 0, 0, 8 - size))
        found.append(steps(function, x)[1][-1][:size])
    return found


def test_sizes_are_padded_to_one():
    found = check_change("cudagraph_sizes", lambda: call_with_sizes(False), lambda: call_with_sizes(True))
    assert found.suggestion.startswith("Pad to a few sizes")


def test_with_sizes_skipped_nothing_is_captured():
    _, found, _ = watched(lambda: call_with_sizes(False))
    assert "cudagraph_skip_dynamic_graphs = True" in found["cudagraph_sizes"].suggestion
    with patched({"triton.cudagraph_skip_dynamic_graphs": True}):
        _, left, session = watched(lambda: call_with_sizes(False))
    assert "cudagraph_sizes" not in left and "record" not in set(session.cudagraphs["action"])


def test_a_backward_that_never_runs():
    def call(has_backward):
        torch.manual_seed(0)
        model = torch.nn.Linear(16, 16, device=DEVICE)
        function, found = captured(model), []
        for _ in range(12):
            y = function(ones(4, 16))
            if has_backward:
                y.sum().backward()
                model.zero_grad()  # The next run needs the memory of the gradients.
            found.append(y.detach().clone().cpu())
            if has_backward:
                del y
            else:
                found.append(y)
        return [one.detach().cpu() for one in found[:1]]

    found = check_change("cudagraph_stuck", lambda: call(False), lambda: call(True))
    assert "Run backward()" in found.suggestion


# Outputs that a later run overwrites


def use_after_the_next_run(function, keep, mark=False):
    with torch.no_grad():
        found = []
        for n in range(5):
            if mark:
                torch.compiler.cudagraph_mark_step_begin()
            found.append(keep(function(ones() * n)))
        return [copies(y + 1) for y in found]


def test_an_output_that_is_used_later_is_cloned():
    def call(keep):
        return use_after_the_next_run(captured(lambda x: x.sin() + 1), keep)

    found = check_change("cudagraph_overwritten", lambda: call(lambda y: y), lambda: call(lambda y: y.clone()))
    assert "y = f(x).clone()" in found.suggestion
    assert found.user_file == __file__


def test_an_output_that_is_kept_has_a_finding_before_it_is_used():
    def call(keep):
        with torch.no_grad():
            function = captured(lambda x: x.sin() + 1)
            kept = [keep(function(ones() * n)) for n in range(5)]
            return copies(kept[-1])

    found = check_change("cudagraph_invalidated", lambda: call(lambda y: y), lambda: call(lambda y: y.clone()))
    assert "clone()" in found.suggestion and "cudagraph_mark_step_begin()" in found.suggestion
    assert found.severity == "low" and found.count >= 1


def test_the_last_step_is_marked_as_over():
    """Outputs of the step before are not needed: marking the step frees them without an error."""

    def call(mark):
        with torch.no_grad():
            function, total = captured(lambda x: x.sin() + 1), torch.zeros(64, device=DEVICE)
            for n in range(5):
                if mark:
                    torch.compiler.cudagraph_mark_step_begin()
                total += function(ones() * n)
            return copies(total)

    marked, _, session = watched(lambda: call(True))
    plain, _, _ = watched(lambda: call(False))
    torch.testing.assert_close(marked, plain)
    assert "overwritten" not in set(session.cudagraphs["action"])


def test_gradients_are_accumulated_in_tensors_that_exist():
    def call(is_prepared):
        torch.manual_seed(0)
        model = torch.nn.Linear(16, 16, device=DEVICE)
        function = captured(model)
        if is_prepared:
            for parameter in model.parameters():
                parameter.grad = torch.zeros_like(parameter)
        for _ in range(4):
            function(ones(4, 16)).sum().backward()
        return [copies(parameter.grad) for parameter in model.parameters()]

    first, found, _ = watched(lambda: call(False))
    if not {"cudagraph_overwritten", "cudagraph_invalidated"} & set(found):
        pytest.skip("this torch does not create .grad tensors in a capture")
    _, left, _ = watched(lambda: call(True))
    assert left == {}
    advice = found.get("cudagraph_overwritten") or found["cudagraph_invalidated"]
    assert ".grad tensors beforehand" in advice.suggestion
