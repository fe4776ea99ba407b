"""Counting calls on request: what is counted, that nothing else is touched, and that all is put back."""

import collections
import contextlib
import os
import sys
import threading
import time

import pytest
import torch

import compilediag as cd
from tests import inside
from tests.live.programs import compiled, renamed

VERSION = tuple(int(part) for part in torch.__version__.split(".")[:2])
#: What of sys.monitoring a test may use itself.
OURS, OTHER = 4, 3

needs_monitoring = pytest.mark.skipif(
    sys.version_info < (3, 12), reason="before Python 3.12: there is no sys.monitoring to count calls with"
)


def calls(session, ran):
    """(function, compile id) -> calls that ran so."""
    found = session.calls.query("ran == @ran")
    return found.groupby(["function", "compile_id"], dropna=False)["count"].sum().to_dict()


def state(session):
    (row,) = [row for row in session.status() if row["name"] == "calls"]
    return row


def by_name(x, name):
    return x + len(name)


def stuck(limit=2):
    """A function of its own that has hit its recompile limit, after `limit + 1` calls of it."""
    function = compiled(renamed(by_name, "by_name"))
    for n in range(limit + 1):
        function(torch.ones(2), "n" * n)
    return function


@needs_monitoring
def test_calls_of_each_entry_are_counted_and_timed():
    with cd.watch(detail="lean", calls=True) as session:
        function = compiled(renamed(by_name, "f"))
        results = [function(torch.ones(2), "n" * n) for n in (1, 2, 1, 1)]
    assert [r.tolist() for r in results] == [[2.0, 2.0], [3.0, 3.0], [2.0, 2.0], [2.0, 2.0]]
    assert calls(session, "compiled") == {("f", "0/0"): 3, ("f", "0/1"): 1}
    assert calls(session, "eager") == {}
    # An entry has a second row where this took more than a second.
    rows = session.calls.groupby("compile_id").agg(
        {"count": "sum", "timed": "sum", "total_s": "sum", "min_s": "min", "first_s": "max"}
    )
    assert rows["timed"].tolist() == rows["count"].tolist()
    assert ((rows["min_s"] > 0) & (rows["min_s"] <= rows["first_s"]) & (rows["first_s"] <= rows["total_s"])).all()
    assert rows["total_s"].sum() < session.compiles["duration_s"].sum(), "what torch compiled in is not theirs"
    assert state(session)["status"] == "active" and state(session)["overhead_s"] > 0
    found = session.break_even().set_index("compile_id")
    assert found["calls"].to_dict() == {"0/0": 3, "0/1": 1} and found["once"].tolist() == [False, True]
    assert found["paid_s"].tolist() == session.compiles["duration_s"].tolist()


@needs_monitoring
def test_calls_after_the_limit_are_counted_and_those_without_torch_compile_are_not():
    plain = renamed(by_name, "by_name")
    with torch._dynamo.config.patch(recompile_limit=2), cd.watch(detail="lean", calls=True) as session:
        function = compiled(plain)
        for n in (0, 1, 2, 2, 3, 0):
            function(torch.ones(2), "n" * n)
        for _ in range(5):
            plain(torch.ones(2), "directly")
    assert calls(session, "eager") == {("by_name", "0/2"): 3}
    assert calls(session, "compiled") == {("by_name", "0/0"): 2, ("by_name", "0/1"): 1}
    (limit,) = [found for found in session.findings() if found.rule == "recompile_limit"]
    assert (
        "hit recompile_limit (2): 3 calls ran eagerly since, " in limit.title and "not counted" not in limit.suggestion
    )
    assert "3 calls fell back to eager" in session.summary()
    assert session.break_even()["eager_s"].notna().all()


@needs_monitoring
def test_what_torch_gave_up_on_is_counted():
    def f(x):
        with torch.no_grad():
            for _ in range(2):
                torch._dynamo.graph_break()
                x = x + 1
        return x

    with cd.watch(detail="lean", calls=True) as session:
        function = compiled(f)
        for _ in range(4):
            function(torch.ones(2))
    assert calls(session, "eager") == {("f", "0/0"): 4}
    (found,) = [found for found in session.findings() if found.rule == "runs_eagerly"]
    assert "; 4 calls ran eagerly since, " in found.title


@needs_monitoring
def test_a_function_whose_compiled_code_is_no_longer_used_is_counted():
    def f(x, change):
        return x + 1 if change else x

    def helper(x):
        return x

    with cd.watch(detail="lean", calls=True) as session:
        function, never = compiled(f), compiled(helper)
        for change in (True, True, False, True):
            function(torch.ones(2), change)
            never(torch.ones(2))
    assert calls(session, "compiled") == {("f", "0/0"): 2}
    assert calls(session, "eager") == {("f", "0/1"): 2}, "and the other function never had anything to compile"
    (found,) = [found for found in session.findings() if "no longer uses its compiled code" in found.suggestion]
    assert "(2 calls ran eagerly since, " in found.suggestion


@needs_monitoring
def test_what_was_compiled_before_the_watch_is_counted():
    with torch._dynamo.config.patch(recompile_limit=2):
        function = stuck()
        with cd.watch(detail="lean", calls=True) as session:
            for name in ("", "", "n", "another", "n" * 20):
                function(torch.ones(2), name)
    assert calls(session, "compiled") == {("by_name", "0/0"): 2, ("by_name", "0/1"): 1}
    assert session.calls.query("ran == 'eager'")["count"].tolist() == [2]
    assert len(session.compiles) == 0


@needs_monitoring
def test_an_exception_passes_and_that_call_is_counted_without_a_time():
    def f(x, stop):
        y = x + 1
        torch._dynamo.graph_break()
        if stop:
            raise ValueError("the user's own")
        return y

    with cd.watch(detail="lean", calls=True) as session:
        function = compiled(f)
        function(torch.ones(2), False)
        for _ in range(3):
            with pytest.raises(ValueError, match="the user's own"):
                function(torch.ones(2), True)
        function(torch.ones(2), False)
    rows = session.calls.query("function == 'f'")
    assert rows["count"].sum() == 5
    assert rows["timed"].sum() == 2


@needs_monitoring
def test_calls_inside_each_other_have_their_own_times():
    def fall(x, n):
        torch._dynamo.graph_break()
        time.sleep(0.01)
        return plain(x, n - 1) + 1 if n else x

    plain = renamed(fall, "fall")
    function = compiled(plain)
    with torch._dynamo.config.patch(recompile_limit=1), cd.watch(detail="lean", calls=True) as session:
        assert function(torch.zeros(1), 4).tolist() == [4.0]
    found = session.calls.query("function == 'fall'")
    assert found["count"].sum() == found["timed"].sum() == 5
    assert found["min_s"].min() >= 0.01 and found["total_s"].sum() >= 0.15, "the outermost holds the four others"


@needs_monitoring
def test_what_is_compiled_within_a_call_is_not_its_time():
    def slow(graph, inputs):
        time.sleep(0.2)
        return graph.forward

    def f(x):
        y = x + 1
        torch._dynamo.graph_break()
        return y * 2

    with cd.watch(detail="lean", calls=True) as session:
        function, x = compiled(f, backend=slow), torch.ones(2)
        began = time.perf_counter()
        function(x)
        took = time.perf_counter() - began
    assert len(session.compiles) > 1
    # The call that holds the others, and the compiles in it: they do not overlap, so together they fit.
    assert session.calls["first_s"].max() + session.compiles["duration_s"].sum() < took


@needs_monitoring
def test_a_generator_that_is_consumed_is_counted_as_the_user_sees_it():
    def numbers(x):
        for n in range(3):
            torch._dynamo.graph_break()
            yield x + n

    def total(x):
        return sum(numbers(x))

    with cd.watch(detail="lean", calls=True) as session:
        function = compiled(total)
        assert [function(torch.ones(1)).tolist() for _ in range(3)] == [[6.0]] * 3
    rows = session.calls
    assert rows["count"].sum() > 0
    assert rows.query("function == 'numbers'")["timed"].fillna(0).sum() == 0, "its time is its consumer's too"


@needs_monitoring
def test_threads_are_counted_together():
    function = compiled(renamed(by_name, "f"))
    function(torch.ones(2), "n")
    errors = []

    def work():
        try:
            for _ in range(200):
                function(torch.ones(2), "n")
        except Exception as error:
            errors.append(error)

    with cd.watch(detail="lean", calls=True) as session:
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert errors == []
    assert calls(session, "compiled") == {("f", "0/0"): 800}
    assert session.calls["timed"].sum() == 800


@needs_monitoring
def test_a_watch_begins_and_ends_while_another_thread_calls():
    function = compiled(renamed(by_name, "f"))
    function(torch.ones(2), "n")
    done, found, errors = threading.Event(), [], []

    def work():
        try:
            while not done.is_set():
                found.append(function(torch.ones(2), "n").tolist())
        except Exception as error:
            errors.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    counted = []
    for _ in range(5):
        with cd.watch(detail="lean", calls=True) as session:
            begun = len(found)
            while len(found) < begun + 3 and thread.is_alive():
                time.sleep(0.01)
        counted.append(session.calls["count"].sum())
    done.set()
    thread.join()
    assert errors == [] and set(map(tuple, found)) == {(2.0, 2.0)}
    assert min(counted) > 0 and sum(counted) <= len(found) + len(counted)


# Nothing else is touched


@needs_monitoring
def test_only_what_is_counted_enters_us():
    def other(x):
        return x * 3

    begun, returned = collections.Counter(), collections.Counter()

    def begins(code, offset):
        begun[code.co_filename, code.co_name] += 1

    def returns(code, offset, result):
        returned[code.co_filename, code.co_name] += 1

    with cd.watch(detail="lean", calls=True):
        function = compiled(renamed(by_name, "f"))
        function(torch.ones(2), "n")
        for event, spy in (("PY_START", begins), ("PY_RETURN", returns)):
            torch._dynamo.eval_frame.skip_code(spy.__code__)
            assert sys.monitoring.register_callback(OURS, getattr(sys.monitoring.events, event), spy) is not None
        assert sys.monitoring.get_events(OURS) == sys.monitoring.events.NO_EVENTS, "of all code there is"
        for _ in range(10):
            other(function(torch.ones(2), "n"))
            by_name(torch.ones(2), "n")
        [by_name(x, "n") for x in torch.ones(3)]
    assert begun == returned == {(__file__, "f"): 10}


@needs_monitoring
def test_what_we_run_at_a_call_is_never_compiled():
    def f(x):
        torch._dynamo.graph_break()
        return x + 1

    with cd.watch(detail="lean", calls=True) as session:
        function = compiled(f)
        function(torch.ones(2))
        with torch.compiler.set_stance("fail_on_recompile"):
            for _ in range(3):
                function(torch.ones(2))
    assert {"_began", "_returned", "tick", "take"} & set(session.compiles["function"]) == set()
    assert calls(session, "compiled")[("f", "0/0")] == 4


def local_events(tool, codes):
    return [sys.monitoring.get_local_events(tool, code) for code in codes]


@needs_monitoring
def test_stop_takes_every_event_off_and_gives_the_tool_back():
    function = compiled(plain := renamed(by_name, "f"))
    with cd.watch(detail="lean", calls=True):
        for n in (1, 2):
            function(torch.ones(2), "n" * n)
        entries = [e.code for e in torch._dynamo.eval_frame._debug_get_cache_entry_list(plain.__code__)]
        assert sys.monitoring.get_tool(OURS) == "compilediag" and 0 not in local_events(OURS, entries)
    assert sys.monitoring.get_tool(OURS) is None
    seen = []
    sys.monitoring.use_tool_id(OURS, "test")
    sys.monitoring.register_callback(OURS, sys.monitoring.events.PY_START, lambda *args: seen.append(args))
    try:
        assert local_events(OURS, [*entries, plain.__code__]) == [0, 0, 0]
        function(torch.ones(2), "n")
        assert seen == []
    finally:
        sys.monitoring.register_callback(OURS, sys.monitoring.events.PY_START, None)
        sys.monitoring.free_tool_id(OURS)


@needs_monitoring
def test_a_tool_of_somebody_elses_is_left_alone():
    sys.monitoring.use_tool_id(OURS, "a profiler")
    try:
        with cd.watch(detail="lean", calls=True) as session:
            compiled(renamed(by_name, "f"))(torch.ones(2), "n")
            assert sys.monitoring.get_tool(OTHER) == "compilediag"
        assert calls(session, "compiled") == {("f", "0/0"): 1}
        assert sys.monitoring.get_tool(OURS) == "a profiler" and sys.monitoring.get_tool(OTHER) is None
        sys.monitoring.use_tool_id(OTHER, "a tracer")
        try:
            with cd.watch(detail="lean", calls=True) as session:
                compiled(renamed(by_name, "g"))(torch.ones(2), "n")
        finally:
            sys.monitoring.free_tool_id(OTHER)
    finally:
        sys.monitoring.free_tool_id(OURS)
    details = state(session)
    assert details["status"] == "unavailable"
    assert details["reason"] == "a profiler and a tracer use the free tool numbers of sys.monitoring"
    assert len(session.calls) == 0 and inside.list_hooks() == []


@needs_monitoring
def test_a_missing_private_api_is_reported_by_name(monkeypatch):
    with monkeypatch.context() as patch:
        patch.delattr(torch._dynamo.convert_frame, "input_codes")
        session = cd.start(calls=True)
    cd.stop()
    assert state(session)["status"] == "unavailable"
    assert "this torch has no torch._dynamo.convert_frame.input_codes" in state(session)["reason"]
    assert sys.monitoring.get_tool(OURS) is None


@needs_monitoring
def test_a_reset_begins_new_entries():
    with cd.watch(detail="lean", calls=True) as session:
        function = compiled(renamed(by_name, "f"))
        for _ in range(3):
            function(torch.ones(2), "n")
        torch._dynamo.reset()
        function(torch.ones(2), "n")
    assert session.break_even()["calls"].tolist() == [3, 1]


@needs_monitoring
@pytest.mark.skipif(torch.cuda.is_available(), reason="torch can't compile in a fork of a process that has used CUDA")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_counts_its_own_calls():
    with cd.watch(detail="lean", calls=True) as session:
        function = compiled(renamed(by_name, "f"))
        for _ in range(3):
            function(torch.ones(2), "n")
        child = os.fork()
        if child == 0:
            try:
                compiled(renamed(by_name, "g"))(torch.ones(2), "n")
                function(torch.ones(2), "n")
                cd.stop()
            finally:
                os._exit(0)
        os.waitpid(child, 0)
        function(torch.ones(2), "n")
    found = session.calls.groupby(["pid", "function"])["count"].sum().to_dict()
    assert found == {(os.getpid(), "f"): 4, (child, "f"): 1, (child, "g"): 1}


@needs_monitoring
@pytest.mark.swallows
def test_what_we_raise_at_a_call_stays_with_us(monkeypatch):
    with torch._dynamo.config.patch(recompile_limit=2), cd.watch(detail="lean", calls=True) as session:
        function = stuck()
        (counter,) = [found for found in inside.find_recorder().counters if found.name == "calls"]
        monkeypatch.setattr(counter._counter, "_inside", {}.popitem)
        assert [function(torch.ones(2), "another").tolist() for _ in range(9)] == [[8.0, 8.0]] * 9
    details = state(session)
    assert details["status"] == "failed" and "switched off after 5 errors" in details["reason"]
    assert sys.monitoring.get_tool(OURS) is None


# Where it can't be done, and from the outside


def test_without_monitoring_it_is_unavailable_and_nothing_is_called_0(monkeypatch):
    monkeypatch.delattr(sys, "monitoring", raising=False)
    with torch._dynamo.config.patch(recompile_limit=2), cd.watch(detail="lean", calls=True) as session:
        stuck()
    assert (state(session)["status"], state(session)["reason"]) == (
        "unavailable",
        "counting calls needs Python 3.12's sys.monitoring",
    )
    found = session.break_even()
    assert len(found) == 2 and found[["calls", "won_s", "break_even", "once"]].isna().all(axis=None)
    text = session.summary()
    assert "Not collected: calls of compiled functions: counting calls needs Python 3.12's sys.monitoring" in text
    assert "it silently runs eagerly" in text and "fell back to eager" not in text
    (limit,) = [found for found in session.findings() if found.rule == "recompile_limit"]
    assert "Its eager calls were not counted; watch(calls=True) counts them" in limit.suggestion


def test_calls_are_reported_only_on_request():
    with cd.watch(detail="lean") as session:
        compiled(renamed(by_name, "f"))(torch.ones(2), "n")
    assert (state(session)["status"], state(session)["reason"]) == ("off", "not requested")
    assert "calls" not in session.summary() and session.meta["asked_for"] == []


class Scaled(torch.nn.Module):
    """A module with many guards: each layer has numbers of its own."""

    def __init__(self, layers):
        super().__init__()
        self.layers = torch.nn.ModuleList(torch.nn.Linear(4, 4) for _ in range(layers))
        self.scales = [1.0 + n for n in range(layers)]

    def forward(self, x):
        for layer, scale in zip(self.layers, self.scales, strict=True):
            x = layer(x) * scale
        return x


@pytest.mark.parametrize("detail", ["lean", "full"])
def test_one_check_of_the_guards_is_timed_with_the_calls_and_not_without(detail):
    few, many = (torch.compile(Scaled(n), backend="eager") for n in (2, 20))
    with torch.no_grad(), cd.watch(detail=detail, calls=True) as session:
        results = [model(torch.ones(2, 4)) for model in (few, many)]
    checks = session.compiles["guard_check_us"]
    assert len(results) == len(checks) == 2 and (checks > 0).all()
    with torch.no_grad(), cd.watch(detail=detail) as session:
        few(torch.ones(3, 4))
    assert session.compiles["guard_check_us"].isna().all() and len(session.compiles) == 1


def test_no_method_of_the_users_is_called_to_time_a_check():
    called = collections.Counter()

    class Named(dict):
        def keys(self):
            called["keys"] += 1
            return super().keys()

        def __contains__(self, key):
            called["contains"] += 1
            return super().__contains__(key)

    def run(watch):
        torch._dynamo.reset()
        called.clear()
        function = compiled(renamed(lambda x, names: x + names["k"], "look_up"))
        with watch:
            function(torch.ones(2), Named(k=1.0))
        return dict(called)

    assert run(cd.watch(calls=True)) == run(contextlib.nullcontext())


@needs_monitoring
@pytest.mark.skipif(VERSION < (2, 13), reason="before torch 2.13 these guards are cheap: dict tags are on")
def test_guards_that_take_much_of_each_call_are_a_finding():
    model = torch.compile(Scaled(60), backend=lambda graph, inputs: lambda *args: (args[0],))
    with torch.no_grad(), cd.watch(calls=True) as session:
        for _ in range(20):
            model(torch.ones(2, 4))
    (found,) = [found for found in session.findings() if found.rule == "guard_cost"]
    assert "self.layers" in found.details[0]
