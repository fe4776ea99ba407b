"""What a finding suggests where similar programs need other advice: the change is made, the recompiles are gone, what
is computed is the same, and it is still compiled. Real compiler, backend "eager".

`tests/advice` follows the advice of each rule in whole programs.
"""

import contextlib

import pytest
import torch

import compilediag

X = torch.arange(8.0)


class Run:
    """A program, run with settings and with options of torch.compile."""

    def __init__(self, program, settings=None, **options):
        torch._dynamo.reset()
        with contextlib.ExitStack() as stack, compilediag.watch() as session:
            for key, value in (settings or {}).items():
                owner = torch.compiler.config if key.endswith("_sources") else torch._dynamo.config
                stack.enter_context(owner.patch({key: value}))
            self.result = program(lambda function: torch.compile(function, backend="eager", **options))
        self.findings, self.session = session.findings(), session
        self.outcomes = sorted(session.compiles["outcome"])

    def find(self, rule):
        (found,) = [finding for finding in self.findings if finding.rule == rule]
        return found


def assert_fixed(before, after):
    """The recompiles are gone, the results are the same, nothing fell back to eager and no graph break is new."""
    assert len(after.session.recompiles) == 0 < len(before.session.recompiles)
    torch.testing.assert_close(after.result, before.result)
    assert set(after.outcomes) == {"ok"} and len(after.session.graph_breaks) == 0


@pytest.mark.parametrize("sizes", [(4, 1, 6), (1, 4, 6), (4, 6, 1)])
def test_sizes_0_and_1_of_tied_tensors_are_all_named(sizes):
    def program(compiled):
        f = compiled(lambda x, y: x + y)
        return [f(torch.arange(float(size)), torch.arange(float(size))) for size in sizes]

    before = Run(program)
    found = before.find("size_zero_one")
    assert "probably" not in found.suggestion
    assert sorted(found.fix["unbacked_sources"].split(",")) == ["L['x']", "L['y']"]
    assert_fixed(before, Run(program, found.fix))


def test_numbers_are_dynamic_at_once_if_everything_is():
    def program(compiled):
        f = compiled(lambda x, k: torch.clamp(x, max=k))
        return [f(X, k) for k in (0.5, 0.25, 0.1)]

    before = Run(program)
    assert before.find("float_changes").suggestion.startswith("To save the recompile, compile with dynamic=True")
    assert_fixed(before, Run(program, dynamic=True))


def test_a_print_with_keyword_arguments_is_not_moved():
    def function(x):
        print("half", end="")
        return x * 2

    suggestion = Run(lambda compiled: compiled(function)(X)).find("graph_break").suggestion
    assert suggestion.startswith("Call print without keyword arguments, which torch drops when it moves the call.")


def test_a_limit_is_raised_for_functions_and_not_for_values_that_need_no_version_each():
    def call_functions(compiled):
        functions = (torch.sin, torch.cos, torch.tan, torch.exp, torch.abs, torch.neg, torch.tanh, torch.ceil)
        f = compiled(lambda x, g: g(x))
        return [f(X, g) for g in (*functions, torch.floor, torch.relu)]

    limit = Run(call_functions).find("recompile_limit")
    assert limit.fix == {"recompile_limit": 64}
    assert "recompile_limit" not in [found.rule for found in Run(call_functions, limit.fix).findings]
    texts = Run(lambda compiled: [compiled(lambda x, k: x * int(k))(X, str(k)) for k in range(2, 13)])
    assert texts.find("recompile_limit").fix is None
