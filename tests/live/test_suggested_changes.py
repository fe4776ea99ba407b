"""What a finding suggests where similar programs need other advice: the change is made, the recompiles are gone, what
is computed is the same, and it is still compiled. And what no setting fixes. Real compiler, backend "eager".

`tests/advice` follows the advice of each rule in whole programs.
"""

import threading
from dataclasses import dataclass, field

import pytest
import torch

import compilediag

X = torch.arange(8.0)


@dataclass
class Run:
    result: object
    recompiles: int
    breaks: int
    outcomes: list
    findings: list = field(repr=False)

    def find(self, rule):
        (found,) = [finding for finding in self.findings if finding.rule == rule]
        return found


def run(program, **options):
    torch._dynamo.reset()
    torch.manual_seed(0)
    with compilediag.watch() as session:
        result = program(lambda f, **more: torch.compile(f, **{"backend": "eager", **options, **more}))
    outcomes = sorted(session.compiles["outcome"])
    return Run(result, len(session.recompiles), len(session.graph_breaks), outcomes, session.findings())


def assert_fixed(before, after, left=0):
    """The recompiles are gone, the results are the same, nothing fell back to eager and no graph break is new."""
    assert after.recompiles == left < before.recompiles
    torch.testing.assert_close(after.result, before.result)
    assert after.breaks <= before.breaks and "ok" in after.outcomes
    assert after.outcomes.count("failed") == 0
    assert after.outcomes.count("empty") <= before.outcomes.count("empty")


def apply_settings(settings, program):
    """The program with these settings in force."""
    ((key, value),) = settings.items()
    owner = torch.compiler.config if key.endswith("_sources") else torch._dynamo.config

    def changed(compiled):
        with owner.patch(**{key: value}):
            return program(compiled)

    return changed


# Sizes: what is marked, and what cannot be


def call_with_sizes(function, *sizes, mark=None, tensors=1):
    def program(compiled):
        f, found = compiled(function), []
        for size in sizes:
            inputs = [torch.arange(float(size)) for _ in range(tensors)]
            for x in inputs if mark else ():
                mark(x, 0)
            found.append(f(*inputs))
        return found

    return program


@pytest.mark.parametrize("sizes", [(4, 1, 6), (1, 4, 6), (4, 6, 1)])
def test_sizes_0_and_1_of_tied_tensors_are_all_named(sizes):
    before = run(call_with_sizes(lambda x, y: x + y, *sizes, tensors=2))
    found = before.find("size_zero_one")
    assert "probably" not in found.suggestion
    assert sorted(found.fix["unbacked_sources"].split(",")) == ["L['x']", "L['y']"]
    assert_fixed(before, run(apply_settings(found.fix, call_with_sizes(lambda x, y: x + y, *sizes, tensors=2))))


def needs_the_number(x):
    y = x * 2
    for i in range(x.size(0)):
        y = y + i
    return y


def test_a_cache_that_is_none_at_first_gets_a_setting_and_no_mark():
    def program(compiled):
        f, past = compiled(lambda x, past=None: x if past is None else torch.cat([past, x]), dynamic=False), None
        for _ in range(4):
            past = f(X, past) * 1
        return past

    changes = [change for found in run(program).findings for change in found.changes]
    assert not any("mark_dynamic(past" in change.code for change in changes)


# Numbers, graph breaks and threads


def test_numbers_are_dynamic_at_once_if_everything_is():
    def program(compiled):
        f = compiled(lambda x, k: torch.clamp(x, max=k))
        return [f(X, k) for k in (0.5, 0.25, 0.1)]

    before = run(program)
    assert before.find("float_changes").suggestion.startswith("To save the recompile, compile with dynamic=True")
    assert_fixed(before, run(program, dynamic=True))


def test_a_print_with_keyword_arguments_is_not_moved():
    def function(x):
        print("half", end="")
        return x * 2

    (broken,) = [found for found in run(lambda compiled: compiled(function)(X)).findings if found.rule == "graph_break"]
    assert broken.suggestion.startswith(
        "Call print without keyword arguments, which torch drops when it moves the call."
    )


def test_the_thread_with_another_mode_is_named():
    def program(compiled, mode=torch.enable_grad):
        f, found = compiled(lambda x: x * 2), []

        def serve():
            with mode():
                found.append(f(X))

        with torch.no_grad():
            found.append(f(X))
        thread = threading.Thread(target=serve)
        thread.start()
        thread.join()
        return found

    before = run(program)
    found = before.find("grad_mode")
    assert "set it inside the function of the thread, serve (test_suggested_changes.py:" in found.suggestion
    assert_fixed(before, run(lambda compiled: program(compiled, torch.no_grad)))


# What no setting fixes, and limits


def call_with_numbers(*numbers, convert=float):
    def program(compiled):
        f = compiled(lambda x, k: x * k)
        return [f(X, convert(k)) for k in numbers]

    return program


@pytest.mark.parametrize("setting", [{"specialize_float": False}, {"dynamic_sources": "L['k']"}])
def test_no_setting_fixes_floats_under_dynamic_false(setting):
    program = call_with_numbers(0.5, 0.4, 0.3, 0.2)
    before = run(program, dynamic=False)
    assert before.recompiles == 3 and before.find("float_changes").fix is None
    assert run(apply_settings(setting, program), dynamic=False).recompiles == 3
    assert run(call_with_numbers(0.5, 0.4, 0.3, 0.2, convert=torch.tensor), dynamic=False).recompiles == 0


def test_a_size_that_code_needs_as_a_number_cannot_be_made_dynamic():
    program = call_with_sizes(needs_the_number, 4, 6, 7)
    before = run(program)
    assert before.find("specialized").fix is None
    assert run(apply_settings({"dynamic_sources": "L['x']"}, program)).recompiles == before.recompiles == 2


def test_a_limit_is_raised_for_functions_and_not_for_values_that_need_no_version_each():
    def call_functions(compiled):
        functions = (torch.sin, torch.cos, torch.tan, torch.exp, torch.abs, torch.neg, torch.tanh, torch.ceil)
        f = compiled(lambda x, g: g(x))
        return [f(X, g) for g in (*functions, torch.floor, torch.relu)]

    limit = run(call_functions).find("recompile_limit")
    assert limit.fix == {"recompile_limit": 64}
    raised = run(apply_settings(limit.fix, call_functions))
    assert "recompile_limit" not in [found.rule for found in raised.findings]
    texts = run(lambda compiled: [compiled(lambda x, k: x * int(k))(X, str(k)) for k in range(2, 13)])
    assert texts.find("recompile_limit").fix is None
