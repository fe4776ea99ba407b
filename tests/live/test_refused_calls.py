"""Calls that torch does not compile, because of a stance or of `aot_compile`: what is recorded and left alone."""

import pytest
import torch

import compilediag
from compilediag.events import Compile, GuardFailure, Recompile, RefusedCall
from tests.inside import list_hooks

START = torch.compiler.set_stance


@pytest.fixture(autouse=True)
def default_stance():
    yield
    START("default")


def scale(x, factor=2):
    return x * factor


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 4)

    def forward(self, ids, *, scale=2):
        return self.layer(ids) * scale


def compile_scale(**options):
    compiled = torch.compile(scale, backend="eager", **options)
    compiled(torch.ones(4))
    return compiled


def list_refused(session):
    """(function, refused_by, ran, guard, expected, actual) -> calls."""
    found = {}
    for row in session.data.rows(RefusedCall):
        key = (row.function, row.refused_by, row.ran, row.guard_source, row.expected, row.actual)
        found[key] = found.get(key, 0) + (row.count or 0)
    return found


def test_a_call_that_runs_eagerly_has_the_guards_of_a_recompile():
    with compilediag.watch() as session:
        compiled = compile_scale()
        with START("eager_on_recompile"):
            for size in (4, 5, 5, 6):
                compiled(torch.ones(size))
            compiled(torch.ones(5))
    by = ("scale", "eager_on_recompile", "eager", "x.size()[0]", "4")
    assert list_refused(session) == {(*by, "5"): 3, (*by, "6"): 1}
    (entry,) = session.data.rows(Compile)
    rows = session.data.rows(RefusedCall)
    assert {row.closest_compile_key for row in rows} == {entry.compile_key}
    assert {row.set_line for row in rows} == {
        test_a_call_that_runs_eagerly_has_the_guards_of_a_recompile.__code__.co_firstlineno + 3
    }
    failures = session.data.rows(GuardFailure)
    assert {row.compile_key for row in failures} == {row.compile_key for row in rows}
    assert not session.data.rows(Recompile)


def test_the_guards_of_a_module_and_of_keywords_are_compared():
    with compilediag.watch() as session:
        model = torch.compile(Model(), backend="eager", dynamic=False)
        model(torch.ones(2, 4))
        with START("eager_on_recompile"):
            model(torch.ones(2, 4), scale=2)
            model(torch.ones(3, 4))
            model(ids=torch.ones(2, 4), scale=3)
    refused = list_refused(session)
    assert [(key[0], *key[3:], count) for key, count in refused.items()] == [
        ("forward", "ids.size()[0]", "2", "3", 1),
        ("forward", "scale", "2", "3", 1),
    ]


def test_a_module_whose_hooks_can_change_its_arguments_is_left_out():
    with compilediag.watch() as session:
        plain = Model()
        plain.register_forward_pre_hook(lambda module, args: (args[0][:2],))
        model = torch.compile(plain, backend="eager")
        model(torch.ones(2, 4))
        with START("eager_on_recompile"):
            model(torch.ones(3, 4))
    assert list_refused(session) == {}


def test_a_function_without_compiled_code_is_counted():
    with compilediag.watch() as session:
        compiled = torch.compile(scale, backend="eager")
        with START("eager_on_recompile"):
            compiled(torch.ones(4))
            compiled(torch.ones(5))
    assert list_refused(session) == {("scale", "eager_on_recompile", "eager", None, None, None): 2}


def test_a_function_that_torch_gave_up_on_was_not_refused():
    def jump(x):
        for _ in range(2):
            x = x + 1
            torch._dynamo.graph_break()
        return x

    with compilediag.watch() as session:
        compiled = torch.compile(jump, backend="eager")
        compiled(torch.ones(4))
        with START("eager_on_recompile"):
            compiled(torch.ones(5))
    assert list_refused(session) == {}


def test_a_call_that_raises_is_recorded_and_its_exception_passes():
    with compilediag.watch() as session:
        compiled = compile_scale()
        with START("fail_on_recompile"):
            compiled(torch.ones(4))
            for _ in range(2):
                with pytest.raises(RuntimeError, match="Detected recompile"):
                    compiled(torch.ones(5))
    assert list_refused(session) == {("scale", "fail_on_recompile", "raised", "x.size()[0]", "4", "5"): 2}


def test_stances_that_run_the_first_call_otherwise():
    with compilediag.watch() as session:
        compiled = torch.compile(scale, backend="eager")
        with START("eager_then_compile"):
            for size in (4, 5, 6):
                compiled(torch.ones(size))
    assert list_refused(session) == {("scale", "eager_then_compile", "eager", None, None, None): 1}


def test_nothing_is_on_the_path_of_a_call_without_such_a_stance():
    with compilediag.watch():
        compiled = compile_scale()
        before = list_hooks()
        with START("force_eager"):
            assert "torch._dynamo.eval_frame._callback_from_stance" in list_hooks()
            compiled(torch.ones(5))
        assert list_hooks() == before
        START("eager_on_recompile")
    assert list_hooks() == []


def test_a_stance_that_was_set_before_the_watch_counts():
    compiled = compile_scale()
    START("force_eager")
    with compilediag.watch() as session:
        compiled(torch.ones(4))
    assert list_refused(session) == {("scale", "force_eager", "eager", None, None, None): 1}


def test_many_failures_of_one_function_are_few_rows():
    with compilediag.watch() as session:
        compiled = compile_scale()
        with START("eager_on_recompile"):
            for size in range(5, 105):
                compiled(torch.ones(size))
    rows = session.data.rows(RefusedCall)
    assert sum(row.count for row in rows) == 100
    assert len({row.compile_key for row in rows}) == 32


def test_results_are_those_of_the_same_program_without_a_watch():
    def run():
        compiled = compile_scale()
        results = []
        for stance in ("eager_on_recompile", "force_eager", "eager_then_compile", "aot_eager_then_compile"):
            with START(stance):
                results += [compiled(torch.arange(size)) for size in (4, 6, 8)]
        return [result.tolist() for result in results]

    expected = run()
    torch._dynamo.reset()
    with compilediag.watch():
        assert run() == expected


@pytest.mark.skipif(
    not torch._dynamo.config.enable_aot_compile, reason="torch 2.11 has aot_compile switched off, and for Inductor only"
)
def test_code_that_was_compiled_ahead_of_time_says_why_it_raises():
    with compilediag.watch() as session:
        compiled = torch.compile(scale, backend="aot_eager", fullgraph=True).aot_compile(((torch.ones(4),), {}))
        compiled(torch.ones(4))
        with pytest.raises(RuntimeError, match="GuardManager check failed|size mismatch"):
            compiled(torch.ones(5))
    (row,) = session.data.rows(Compile)
    assert (row.function, row.trigger, row.outcome, row.backend) == ("scale", "aot_compile", "ok", "aot_eager")
    assert row.compile_key is not None and row.stack is not None and row.graph_ops == 1
    assert list_refused(session) == {("scale", "aot_compile", "raised", "x.size()[0]", "4", "5"): 1}
    assert [finding.rule for finding in session.findings()] == ["refused_calls"]
