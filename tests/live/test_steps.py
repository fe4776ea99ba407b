"""The program's own steps: which rows have them, and where torch's own user context names one."""

import threading

import pytest
import torch

import compilediag as cd
from compilediag.events import CacheLookup, Compile, Recompile
from compilediag.integrations.training_watch import LightningHooks, TransformersHooks
from tests.live import programs


@pytest.fixture(autouse=True)
def no_user_context():
    yield
    torch._dynamo.reset_recompile_user_contexts()


def compile_numbers(*numbers):
    function = programs.compiled(programs.renamed(lambda x, n: x * n, "scale"), dynamic=False)
    for number in numbers:
        yield function(torch.ones(2), number)


@pytest.mark.parametrize("detail", ["lean", "full"])
def test_rows_have_the_step_in_which_they_began(detail):
    with cd.watch(detail=detail) as session:
        calls = compile_numbers(2.0, 3.0, 4.0, 5.0)
        next(calls)  # Before the first step.
        for number in (None, 411, None):
            cd.step(number)
            next(calls)
    assert [row.step for row in session.data.rows(Compile)] == [None, 0, 411, 412]
    assert [row.step for row in session.data.rows(Recompile)] == [0, 411, 412]
    assert session.recompiles["step"].tolist() == [0, 411, 412]
    assert {row.step for row in session.data.rows(CacheLookup)} == {None, 0, 411, 412}
    (finding,) = session.findings()
    assert finding.steps == (0, 411, 412)
    assert "at steps 0, 411 and 412" in session.summary()


def test_a_step_outside_of_a_watch_does_nothing_and_a_wrong_number_is_the_callers_error():
    cd.step()
    with cd.watch() as session, pytest.raises(TypeError):
        cd.step("412")
    assert cd.current() is None and not len(session.compiles)


def test_a_compile_that_outlasts_its_step_belongs_to_the_step_in_which_it_began():
    def slow_backend(graph, inputs):
        cd.step(2)  # As another thread would.
        return graph

    with cd.watch() as session:
        cd.step(1)
        programs.compiled(lambda x: x + 1, backend=slow_backend)(torch.ones(2))
        programs.compiled(lambda x: x + 2)(torch.ones(2))
    assert [row.step for row in session.data.rows(Compile)] == [1, 2]


def test_the_user_context_of_torch_names_the_step(tmp_path):
    step = 0
    torch._dynamo.register_hook_for_recompile_user_context(lambda: f"Iteration: {step}")
    with cd.watch() as session:
        for step, _ in enumerate(compile_numbers(2.0, 3.0, 4.0), 7):  # noqa: B007
            pass
    # The hook is called when the next compile begins, and the loop counts after it.
    assert [row.step for row in session.data.rows(Compile)] == [0, 7, 8]
    assert session.compiles["step"].tolist() == [0, 7, 8]
    assert [row.step for row in session.data.rows(Recompile)] == session.recompiles["step"].tolist() == [7, 8]


def test_a_context_without_one_number_names_no_step():
    texts = iter(["epoch 3, step 7", "warm-up", "step 9"])
    torch._dynamo.register_hook_for_recompile_user_context(lambda: next(texts))
    with cd.watch() as session:
        list(compile_numbers(2.0, 3.0, 4.0))
    assert [row.step for row in session.data.rows(Compile)] == [None, None, 9]


def test_compiles_and_recompiles_name_their_thread():
    function = programs.compiled(programs.renamed(lambda x, n: x * n, "scale"), dynamic=False)
    with cd.watch() as session:
        function(torch.ones(2), 2.0)
        threads = [threading.Thread(target=function, args=(torch.ones(2), number)) for number in (3.0, 4.0)]
        for thread in threads:
            thread.start()
            thread.join()
    compiles, recompiles = session.data.rows(Compile), session.data.rows(Recompile)
    assert compiles[0].thread == threading.get_ident()
    assert [row.thread for row in compiles[1:]] == [row.thread for row in recompiles]
    assert threading.get_ident() not in {row.thread for row in recompiles}


class State:
    global_step = 41


@pytest.mark.parametrize("hooks", [LightningHooks, TransformersHooks])
def test_the_callbacks_begin_steps(hooks):
    callback = hooks(show_plan=False)
    with cd.watch() as session:
        if hooks is LightningHooks:
            callback.on_train_batch_start(State, None, None, 0)
        else:
            callback.on_step_begin(None, State, None)
        list(compile_numbers(2.0))
    assert [row.step for row in session.data.rows(Compile)] == [41]
