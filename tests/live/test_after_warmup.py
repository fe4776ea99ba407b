"""What compiles after the warm-up: the incidents, the warning, and the exception that is raised before the compile."""

import logging
import threading

import pytest
import torch

import compilediag as cd
from compilediag.errors import CompiledAfterWarmup, CompilediagError
from compilediag.events import Compile, RefusedCall, WarmupEnd
from compilediag.watch import listen
from tests import inside
from tests.live import programs


def make_scale(**options):
    return programs.compiled(programs.renamed(lambda x, n: x * n, "scale"), **{"dynamic": False, **options})


def list_kinds(session):
    return session.incidents[["kind", "function", "step"]].astype(object).values.tolist()


@pytest.mark.parametrize("detail", ["lean", "full"])
def test_what_compiles_after_the_warm_up_is_an_incident_with_cause_change_and_inputs(detail):
    function = make_scale()
    with cd.watch(detail=detail) as session:
        for number in (2, 3):
            cd.step()
            function(torch.ones(4), number)
        session.end_warmup()
        function(torch.ones(4), 3)
        thread = threading.Thread(target=function, args=(torch.ones(4), 5))
        thread.start()
        thread.join()
        programs.compiled(lambda x: x + 1)(torch.ones(2))
    recompile, compile = session.incidents.to_dict("records")
    assert (recompile["kind"], recompile["function"], recompile["step"]) == ("recompile", "scale", 1)
    assert recompile["change"] == "n was 3, then 5"
    assert recompile["inputs"] == {"lean": "n = 5", "full": "x: f32[4] cpu, n = 5"}[detail]
    assert recompile["thread"] != threading.get_ident() == compile["thread"]
    finding = next(finding for finding in session.findings() if finding.function == "scale")
    assert (recompile["cause"], recompile["fingerprint"]) == (finding.title, finding.fingerprint)
    assert compile["kind"] == "compile" and compile["fingerprint"] != recompile["fingerprint"]
    seconds = {row.event_id: row.duration_s for row in session.data.rows(Compile)}
    assert [row["seconds"] for row in (recompile, compile)] == [seconds[r["event_id"]] for r in (recompile, compile)]
    (end,) = session.data.rows(WarmupEnd)
    assert (end.on_compile, end.ended_by, end.step, end.user_file) == ("count", "end_warmup", 1, __file__)


def test_the_step_after_the_warm_up_ends_it():
    function = make_scale()
    with cd.watch(warmup_steps=2) as session:
        for number in (2, 3, 5, 7):
            cd.step()
            function(torch.ones(2), number)
    assert list_kinds(session) == [["recompile", "scale", 2], ["recompile", "scale", 3]]
    (end,) = session.data.rows(WarmupEnd)
    assert (end.ended_by, end.step) == ("warmup_steps", 2)


def test_a_backward_that_is_compiled_late_is_an_incident_of_its_own():
    function = programs.compiled(lambda x: (x * x).sum(), backend="aot_eager")
    with cd.watch() as session:
        result = function(torch.ones(2, requires_grad=True))
        session.end_warmup()
        result.backward()
    assert session.incidents["kind"].tolist() == ["compile"]
    assert session.incidents["change"].tolist() == ["its first backward"]


def test_cache_misses_belong_to_the_compile(fresh_inductor_cache):
    with cd.watch() as session:
        session.end_warmup()
        # A call of a library: no C++ to compile.
        torch.compile(torch.nn.Linear(4, 4, bias=False))(torch.ones(2, 4)).sum()
    incidents = session.incidents
    misses = incidents[incidents["kind"] == "cache_miss"]
    (compile,) = incidents[incidents["part_of"].isna()].to_dict("records")
    assert compile["kind"] == "compile" and len(misses) >= 2
    assert set(misses["part_of"]) == {compile["event_id"]} and set(misses["compile_key"]) == {compile["compile_key"]}


def test_an_unknown_answer_and_a_session_that_is_over_are_refused():
    with cd.watch() as session:
        with pytest.raises(CompilediagError, match="'count', 'warn', 'raise'"):
            session.end_warmup("explode")
        assert len(session.warmup_ends) == 0
    with pytest.raises(CompilediagError, match="not being recorded by this process"):
        session.end_warmup()
    with pytest.raises(CompilediagError, match="'count', 'warn', 'raise'"), cd.watch(on_compile="explode"):
        pass
    assert cd.current() is None


def test_a_warning_is_one_line_per_incident(caplog):
    function = make_scale()
    with caplog.at_level(logging.WARNING, "compilediag"), cd.watch() as session:
        function(torch.ones(2), 2)
        session.end_warmup("warn")
        cd.step(412)
        function(torch.ones(2), 3)
        function(torch.ones(2), 3)
        session.flush()
        (line,) = caplog.messages
    assert "recompile of scale" in line and "at step 412" in line and "n was 2, then 3" in line


# raise


def list_entries(function):
    return inside.TorchName("torch._C._dynamo.eval_frame", "_debug_get_cache_entry_list").find()(function.__code__)


def test_it_raises_in_the_caller_before_the_compile_with_guard_and_values():
    plain = programs.renamed(lambda x, n: x * n, "scale")
    function = programs.compiled(plain, dynamic=False)
    hooks = inside.list_hooks()
    with cd.watch() as session:
        function(torch.ones(4), 2)
        session.end_warmup("raise")
        cd.step(412)
        before = len(list_entries(plain))
        for _ in range(2):
            with pytest.raises(CompiledAfterWarmup) as raised:
                function(torch.ones(4), 3)
        message = str(raised.value)
        assert all(part in message for part in ("scale", "test_after_warmup.py", "at step 412", "n was 2, now 3"))
        assert "L['n'] == 2" in message and "\n" not in message
        assert len(list_entries(plain)) == before
        assert function(torch.ones(4), 2).tolist() == [2.0] * 4  # What is compiled runs.
        session.end_warmup("count")
        assert function(torch.ones(4), 3).tolist() == [3.0] * 4  # And nothing is broken for what is not.
        assert len(list_entries(plain)) == before + 1
    assert [row.outcome for row in session.data.rows(Compile)] == ["ok", "ok"]
    assert [row.cache_size for row in session.data.rows(Compile)] == [0, 1]
    refused, recompile = session.incidents.to_dict("records")
    assert (refused["kind"], refused["count"], refused["change"], refused["step"]) == (
        "refused",
        2,
        "n was 2, then 3",
        412,
    )
    assert recompile["kind"] == "recompile" and session.summary()
    assert [(row.refused_by, row.ran) for row in session.data.rows(RefusedCall)] == [("end_warmup", "raised")] * 2
    assert programs.at_work(session)["refusals"]["status"] == "active" and inside.list_hooks() == hooks


@pytest.mark.parametrize("options", [{}, {"fullgraph": True}], ids=["breaks", "fullgraph"])
def test_a_function_that_was_never_compiled_raises_too(options):
    function = programs.compiled(lambda x: x + 1, **options)
    with cd.watch() as session:
        session.end_warmup("raise")
        with pytest.raises(CompiledAfterWarmup, match="it was not compiled before"):
            function(torch.ones(2))
    assert function(torch.ones(2)).tolist() == [2.0, 2.0]
    assert not session.data.rows(Compile) and session.incidents["kind"].tolist() == ["refused"]


def test_it_raises_also_where_torch_suppresses_errors():
    function = make_scale()
    with cd.watch() as session, torch._dynamo.config.patch(suppress_errors=True):
        function(torch.ones(2), 2)
        session.end_warmup("raise")
        with pytest.raises(CompiledAfterWarmup):
            function(torch.ones(2), 3)
        assert function(torch.ones(2), 2).tolist() == [2.0, 2.0]
    assert function(torch.ones(2), 3).tolist() == [3.0, 3.0]


def test_a_call_that_raised_leaves_modes_configuration_and_the_next_thread_as_they_were():
    function, errors = make_scale(), []
    modes = (torch.is_grad_enabled(), torch.is_inference_mode_enabled(), torch.compiler.is_compiling())
    config = torch._dynamo.config.save_config()

    def call():
        try:
            function(torch.ones(2), 3)
        except CompiledAfterWarmup as error:
            errors.append(error)

    with cd.watch() as session:
        function(torch.ones(2), 2)
        session.end_warmup("raise")
        threads = [threading.Thread(target=call) for _ in range(3)]
        for thread in [*threads]:
            thread.start()
        for thread in threads:
            thread.join()
        call()
        session.end_warmup("count")
        call()
    assert len(errors) == 4
    assert modes == (torch.is_grad_enabled(), torch.is_inference_mode_enabled(), torch.compiler.is_compiling())
    assert config == torch._dynamo.config.save_config()
    assert len(session.data.rows(Compile)) == 2


def test_the_stance_that_raises_keeps_its_own_exception():
    function = make_scale()
    with cd.watch() as session:
        function(torch.ones(2), 2)
        session.end_warmup("raise")
        with torch.compiler.set_stance("fail_on_recompile"), pytest.raises(RuntimeError) as raised:
            function(torch.ones(2), 3)
        assert not isinstance(raised.value, CompiledAfterWarmup)
    assert {row.refused_by for row in session.data.rows(RefusedCall)} == {"fail_on_recompile"}


# Listeners, which read no file


def test_a_listener_is_told_of_each_event_once_and_of_the_end_of_the_warm_up():
    turns = []
    stop = listen(turns.append)
    try:
        with cd.watch() as session:
            function = make_scale()
            function(torch.ones(2), 2)
            session.end_warmup()
            function(torch.ones(2), 3)
    finally:
        stop()
    with cd.watch():
        function(torch.ones(2), 4)
    told = [event for turn in turns for event in turn.events if isinstance(event, Compile)]
    assert [(e.function, e.time_ns) for e in told] == [(e.function, e.time_ns) for e in session.data.rows(Compile)]
    assert turns[-1].warmup is not None and not turns[-1].running


def test_what_a_listener_raises_never_reaches_the_program():
    stop = listen(lambda turn: 1 / 0)
    try:
        with cd.watch() as session:
            assert make_scale()(torch.ones(2), 2).tolist() == [2.0, 2.0]
    finally:
        stop()
    writer = next(row for row in session.status() if row["name"] == "writer")
    assert writer["status"] == "failed" and "ZeroDivisionError" in writer["reason"]
    assert len(session.compiles) == 1


def test_the_inputs_of_an_incident_have_the_sizes_of_its_call():
    @torch.compile(backend="eager")
    def add(x, ids):
        return x.sum() + ids.sum()

    with cd.watch() as session:
        for number, (rows, columns) in enumerate([(4, 8), (6, 8), (6, 9)]):
            if number == 1:
                session.end_warmup()
            add(torch.ones(rows, columns), torch.ones(rows, dtype=torch.long))
    assert session.incidents["inputs"].tolist() == [
        "x: f32[6, 8] cpu, ids: i64[6] cpu",
        "x: f32[6, 9] cpu, ids: i64[6] cpu",
    ]
