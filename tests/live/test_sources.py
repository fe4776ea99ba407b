"""What each source sees of the real compiler, and that its numbers are torch's own."""

import os
import sys
import threading

import pandas as pd
import pytest
import torch
from torch._dynamo import utils

import compilediag as cd
from compilediag.events import BY_TABLE
from tests import inside
from tests.live import programs
from tests.live.parity.cache_programs import training
from tests.unit.session_builder import page_of


def metrics_of(run):
    """The session of a run, and torch's own metrics of it."""
    torch._dynamo.reset()
    utils.clear_compilation_metrics()
    with cd.watch() as session:
        run()
    return session, list(utils.get_compilation_metrics())


# Compiles


@pytest.fixture(scope="module")
def mixed():
    """The session of several programs, and torch's own metrics of it."""
    names = ("sizes", "numbers", "attribute", "backward", "graph_breaks", "limit")
    return metrics_of(lambda: [getattr(programs, name)() for name in names])


def test_compiles_are_torchs_metrics_to_the_last_figure(mixed):
    session, metrics = mixed
    frame = session.compiles
    assert len(frame) == len(metrics) > 12
    assert frame["time"].astype("int64").tolist() == [m.start_time_us * 1000 for m in metrics]
    columns = {
        "compile_id": "compile_id",
        "guard_count": "guard_count",
        "guard_latency_us": "guard_latency_us",
        "graph_ops": "graph_op_count",
        "graph_nodes": "graph_node_count",
        "graph_inputs": "graph_input_count",
        "cache_size": "accumulated_cache_size",
        "fail_type": "fail_type",
    }
    for column, name in columns.items():
        values = [None if isna else value for value, isna in zip(frame[column], frame[column].isna(), strict=True)]
        assert values == [getattr(m, name) for m in metrics], column
    seconds = {"dynamo_s": "dynamo_cumulative_compile_time_us", "aot_s": "aot_autograd_cumulative_compile_time_us"}
    for column, name in seconds.items():
        theirs = [getattr(m, name) for m in metrics]
        assert frame[column].tolist() == pytest.approx([t and t / 1e6 for t in map(float_or_nan, theirs)], nan_ok=True)
    lengths = [(m.end_time_us - m.start_time_us) / 1e6 for m in metrics]
    assert frame["duration_s"].tolist() == pytest.approx(lengths)
    assert page_of(session)["totals"]["compile_s"] == pytest.approx(sum(lengths))


def float_or_nan(value):
    return float("nan") if value is None else float(value)


def test_a_backward_is_named_after_its_function():
    def loss(x):
        return (x * x).sum()

    function = programs.compiled(loss, backend="aot_eager", dynamic=False)
    with cd.watch() as session:
        for n in (2, 3):
            function(torch.ones(n, requires_grad=True)).backward()
    frame = session.compiles
    details = frame[["compile_id", "function", "trigger"]].values.tolist()
    assert details == [[f"0/{n}", "loss", trigger] for n in (0, 1) for trigger in ("dynamo", "lazy_backward")]
    assert (frame["line"] == loss.__code__.co_firstlineno).all() and (frame["backend"] == "aot_eager").all()
    [recompile] = session.recompiles.itertuples()
    assert recompile.lost_s == pytest.approx(frame["duration_s"][2:].sum()), "its backward is part of what it cost"


@pytest.mark.parametrize("way", ["config", "context"])
def test_compiled_autograd_has_ids_of_its_own(way):
    def step(x):
        loss = (x * x).sum()
        loss.backward()
        return x.grad

    def run(n):
        x = torch.ones(n, requires_grad=True)
        if way == "config":
            with torch._dynamo.config.patch(compiled_autograd=True):
                return programs.compiled(step)(x)
        with torch._dynamo.compiled_autograd._enable(torch.compile(backend="eager")):
            return step(x)

    with cd.watch() as session:
        grads = [run(n) for n in (2, 3)]
    assert [g.tolist() for g in grads] == [[2.0] * 2, [2.0] * 3]
    backward = session.compiles.query("trigger == 'compiled_autograd'")
    assert backward["compile_id"].str.fullmatch(r"!\d+/\d+/\d+").all() and len(backward) == 2
    if way == "context":
        assert session.recompiles["compile_id"].tolist() == [backward["compile_id"].iloc[1]]
        assert session.recompiles["lost_s"].tolist() == [backward["duration_s"].iloc[1]]
        assert session.recompiles["guard_kind"].tolist() == ["tensor_size"]


def raising(graph, inputs):
    raise ValueError("no such backend")


@pytest.mark.since_torch("2.15", "there is no torch.compiler.precompile.capture")
def test_a_capture_ahead_of_time_is_a_compile(tmp_path):
    from torch.compiler import precompile

    def squares(x):
        return x.square().sum()

    paths = {"artifact_path": tmp_path / "a.py", "cache_path": tmp_path / "a.cache", "backend": "eager"}
    with cd.watch() as session:
        with precompile.capture(squares, **paths) as capture:
            assert capture(torch.ones(3)) == 3
        with pytest.raises(Exception), precompile.capture(lambda x: x / 0 / y, **paths) as capture:  # noqa: B017, F821
            capture(torch.ones(3))
    good, bad = session.compiles.astype(object).to_dict("records")
    assert (good["function"], good["trigger"], good["outcome"], good["backend"]) == (
        "squares",
        "precompile",
        "ok",
        "eager",
    )
    assert (good["file"], good["line"]) == (__file__, squares.__code__.co_firstlineno)
    assert good["duration_s"] > 0 and good["compile_key"] != bad["compile_key"]
    assert (bad["function"], bad["outcome"], bad["fail_type"]) == ("<lambda>", "failed", "NameError")
    assert "Nothing was compiled" not in session.summary()


def test_a_compile_worker_that_dies_is_a_text():
    """As `torch._inductor.compile_worker` of torch 2.15 reports it, outside of any compile."""
    metadata = {"name": "compile_worker_sidecar_death", "encoding": "string"}
    with cd.watch() as session:
        torch._logging.trace_structured("artifact", lambda: metadata, payload_fn=lambda: "sidecar pid=7 returncode=-9")
    (row,) = session.artifacts.to_dict("records")
    assert (row["name"], session.artifact(row["event_id"])) == (metadata["name"], "sidecar pid=7 returncode=-9")


def test_outcomes_limits_and_restarts():
    def limited(x, name):
        return x + len(name)

    def broken(x):
        y = x + 1
        torch._dynamo.graph_break()
        return y * 2

    with cd.watch() as session:
        with torch._dynamo.config.patch(recompile_limit=2):
            function = programs.compiled(limited)
            results = [function(torch.ones(2), "n" * n).tolist() for n in range(5)]
        programs.compiled(lambda x: x)(torch.ones(2))
        programs.compiled(broken)(torch.ones(2))
        with pytest.raises(torch._dynamo.exc.BackendCompilerFailed):
            programs.compiled(lambda x: x * 2, backend=raising)(torch.ones(2))
    assert results == [[1.0 + n] * 2 for n in range(5)]
    frame = session.compiles.set_index("compile_id")
    assert frame["outcome"].to_dict() == {
        "0/0": "ok", "0/1": "ok", "0/2": "skipped", "1/0": "empty", "2/0": "ok", "3/0": "ok", "4/0": "failed",
    }  # fmt: skip
    hit = frame.loc["0/2"]
    assert (hit["limit"], hit["function"], hit["is_recompile"]) == ("recompile_limit", "limited", True)
    assert "recompile limit exceeded" in hit["fail_reason"]
    assert frame["limit"].notna().sum() == page_of(session)["totals"]["limit_hits"] == 1
    restarted = frame.loc["2/0"]
    assert restarted["attempt"] == 1 and len(restarted["restart_reasons"]) == 1
    assert "graph_break()" in restarted["restart_reasons"][0]
    assert frame.loc["3/0", "function"].startswith("torch_dynamo_resume_in_broken")
    failed = frame.loc["4/0"]
    assert failed["backend"] == "raising" and "no such backend" in failed["fail_reason"]
    assert set(frame["backend"]) == {"eager", "raising"}


# Phases


def test_phases_are_nested_and_within_their_compile(mixed):
    session, _ = mixed
    frame = session.phases
    assert frame["duration_s"].ge(0).all() and len(frame) > 80
    whole = frame.query("name == 'entire_frame_compile'")
    assert sorted(whole["compile_id"]) == sorted(session.compiles.query("trigger == 'dynamo'")["compile_id"])
    begin = frame["time"].astype("int64")
    end = begin + frame["duration_s"] * 1e9
    for at, row in frame[frame["parent"].notna()].iterrows():
        outer = (frame["name"] == row["parent"]) & (frame["depth"] == row["depth"] - 1)
        holds = (begin[outer] <= begin[at] + 1e5) & (end[outer] >= end[at] - 1e5)
        assert holds.any(), row
    assert frame[frame["parent"].isna()]["depth"].eq(0).all()


def test_the_length_of_a_phase_is_torchs_own():
    utils.compilation_time_metrics.clear()
    session, _ = metrics_of(programs.sizes)
    theirs = utils.compilation_time_metrics["bytecode_tracing"]
    ours = session.phases.query("name == 'bytecode_tracing'")["duration_s"].tolist()
    assert ours == pytest.approx(theirs, abs=2e-3) and len(ours) >= 2


def test_phases_of_several_threads_are_in_the_order_in_which_they_end():
    begun, ended = threading.Event(), threading.Event()

    def build():
        with utils.dynamo_timed("theirs"):
            begun.set()
            assert ended.wait(300)

    with cd.watch(detail="full") as session, utils.dynamo_timed("whole"):
        with utils.dynamo_timed("before"):
            other = threading.Thread(target=build)
            other.start()
            assert begun.wait(300)
        ended.set()
        other.join()
        with utils.dynamo_timed("after"):
            pass
    assert session.phases["name"].tolist() == ["before", "theirs", "after", "whole"]
    assert session.phases["parent"].fillna("").tolist() == ["whole", "", "whole", ""]


# Recompiles


def three_at_once(detail):
    """A function of which four entries fail, each by three guards."""

    def several(x, a, b):
        return x + len(a) + len(b)

    function = programs.compiled(several)
    with torch._dynamo.config.patch(automatic_dynamic_shapes=False), cd.watch(detail=detail) as session:
        for n in range(5):
            function(torch.ones(n + 2), "a" * n, "b" * n)
    return session


def test_full_finds_all_failing_guards_of_every_entry():
    session = three_at_once("full")
    last = session.recompiles.iloc[-1]
    assert (last["entries_checked"], last["guards_failed"], last["compile_id"]) == (4, 12, "0/4")
    failures = session.guard_failures.query("compile_id == '0/4'")
    found = failures.groupby("entry_compile_id")["guard_source"].agg(set).to_dict()
    assert found == {f"0/{n}": {"x.size()[0]", "a", "b"} for n in range(4)}
    assert failures.groupby("entry_compile_id")["is_first"].sum().tolist() == [1] * 4
    changes = {
        r["guard_source"]: (r["expected"], r["actual"])
        for _, r in failures.iterrows()
        if r["entry_compile_id"] == "0/3"
    }
    assert changes["x.size()[0]"] == ("5", "6")
    assert changes["a"] == ("'aaa'", "'aaaa'")


def test_lean_finds_the_first_of_each_entry_and_all_of_the_closest():
    session = three_at_once("lean")
    last = session.recompiles.iloc[-1]
    assert (last["entries_checked"], last["guards_failed"]) == (4, 3 + 3)
    found = session.guard_failures.query("compile_id == '0/4'").groupby("entry_compile_id").size().to_dict()
    assert found == {
        last["closest_compile_id"]: 3,
        **{f"0/{n}": 1 for n in range(4) if f"0/{n}" != last["closest_compile_id"]},
    }


def test_reasons_lines_and_decisions_are_those_of_torch(mixed):
    session, metrics = mixed
    theirs = [m.recompile_reason for m in metrics if m.recompile_reason]
    rows = session.recompiles
    assert len(rows) == len(theirs) == page_of(session)["totals"]["recompiles"] > 8
    reasons = rows["reason"].tolist()
    assert [reason.partition(": ")[0] for reason in reasons] == rows["closest_compile_id"].tolist()
    # Of the sizes, the entry that torch meets first is also the closest.
    of_sizes = [at for at, compile_id in enumerate(rows["compile_id"]) if compile_id.startswith("0/")]
    assert len(of_sizes) > 1 and all(reasons[at] in theirs[at] for at in of_sizes)
    row = rows.query("guard_source == 'self.step'").iloc[0]
    assert row["user_file"] == programs.__file__ and row["user_code"].strip() == "self.step += 1"
    with open(programs.__file__) as text:
        assert text.readlines()[row["user_line"] - 1].strip() == "self.step += 1"
    first = session.dynamic_decisions.iloc[0]
    assert (first["source"], first["dim"], first["cached"], first["new"]) == ("L['x']", "0", "3", "4")
    assert first["compile_id"] == rows["compile_id"].iloc[0]


# Graph breaks, artifacts


def test_graph_breaks_have_torchs_id_explanation_and_the_users_line(mixed):
    session, _ = mixed
    called, branch = (session.graph_breaks.query(f"break_id == '{name}'").iloc[0] for name in ("GB0025", "GB0170"))
    assert (called["reason"], called["user_code"]) == (
        "Call to `torch._dynamo.graph_break()`",
        "torch._dynamo.graph_break()",
    )
    assert called["user_file"] == programs.__file__ and called["hints"] and called["explanation"]
    assert called["compile_id"] in set(session.compiles["compile_id"])
    assert (branch["reason"], branch["user_code"]) == ("Data-dependent branching", "if y.sum() > 3:")
    assert "torch.cond" in " ".join(branch["hints"]) and "dynamic control flow" in branch["explanation"]


def test_artifacts_are_the_texts_that_torch_hands_out():
    graphs = []

    def keep(graph, inputs):
        graphs.append(graph)
        return graph

    with cd.watch() as session:
        programs.compiled(lambda x: x.sin() + 1, backend=keep)(torch.ones(2))
    by_name = {name: int(i) for name, i in zip(session.artifacts["name"], session.artifacts["event_id"], strict=True)}
    graph = session.artifact(by_name["dynamo_output_graph"])
    assert "l_x_.sin()" in graph and "torch.float32" not in graphs[0].code
    assert "TREE_GUARD_MANAGER" in session.artifact(by_name["dynamo_cpp_guards_str"])
    assert set(session.artifacts["compile_id"]) == {"0/0"}
    sizes = dict(zip(session.artifacts["event_id"], session.artifacts["size"], strict=True))
    assert all(len(session.artifact(i).encode()) == size for i, size in sizes.items())


def test_the_texts_are_the_same_when_somebody_else_listens_too():
    """Then torch builds the records, and they reach us as records; else we make the texts ourselves."""
    import logging

    def texts():
        torch._dynamo.reset()
        with cd.watch() as session:
            programs.kinds()
        frame = session.artifacts.query("name != 'dynamo_cpp_guards_str'")  # its latency is measured anew
        return [(r["name"], r["compile_id"], session.artifact(r["event_id"])) for _, r in frame.iterrows()]

    alone = texts()
    other = logging.NullHandler()
    logging.getLogger("torch.__trace").addHandler(other)
    try:
        together = texts()
    finally:
        logging.getLogger("torch.__trace").removeHandler(other)
    assert alone == together and len(alone) >= 5


# Caches (tests/live/parity/ has each behavior of them)


def test_what_inductor_took_and_a_cache_saved_is_part_of_the_compile(fresh_inductor_cache):
    cold, warm = in_session(training), in_session(training)
    frame = cold.compiles.set_index("trigger")
    assert frame["function"].to_dict() == {"dynamo": "squared", "lazy_backward": "squared"}
    assert frame["outcome"].tolist() == ["ok", "ok"] and frame["backend"].tolist() == ["inductor"] * 2
    forward = frame.loc["dynamo"]
    assert forward["duration_s"] >= forward["dynamo_s"] >= forward["aot_s"] >= forward["inductor_s"]
    assert forward["inductor_s"] >= forward["codegen_s"] > 0
    names = set(cold.artifacts["name"])
    assert {"inductor_output_code", "aot_joint_graph", "aot_forward_graph", "aot_backward_graph"} <= names
    saved = cold.cache_lookups.query("cache == 'fx_graph' and outcome == 'saved'")
    assert 0 < saved["taken_s"].sum() <= frame["inductor_s"].sum()
    (hit,) = warm.cache_lookups.query("cache == 'aot_autograd' and outcome == 'hit'")["saved_s"]
    assert page_of(warm)["totals"]["cache_saved_s"] == pytest.approx(hit) and warm.compiles["inductor_s"].isna().all()


def in_session(run):
    with cd.watch() as session:
        run()
    return session


# The whole session


def test_every_event_is_in_one_table_and_of_this_process(mixed):
    session, _ = mixed
    events = session.events[session.events["kind"] != "source"]
    assert sum(len(session.table(table)) for table in BY_TABLE if table != "sources") == len(events)
    assert set(session.events["pid"]) == {os.getpid()} and session.events["rank"].isna().all()
    begin, end = (pd.Timestamp(session.meta[name], tz="UTC") for name in ("created_ns", "stopped_ns"))
    assert session.events["time"].between(begin, end).all()


def test_sources_say_what_they_did_and_what_it_cost(mixed):
    session, _ = mixed
    found = {row["name"]: row for row in session.status()}
    assert set(found) == {*inside.list_sources(), "writer"}
    at_work = programs.at_work(session).values()
    assert {(row["status"], row["reason"]) for row in at_work} == {("active", None)}
    assert {row["dropped"] for row in found.values()} == {0}
    details = {"compiles": "compiles", "graph_breaks": "graph_breaks", "dynamic": "dynamic_decisions"}
    for name, table in details.items():
        assert found[name]["events"] == len(getattr(session, table)), name
    assert found["recompiles"]["events"] == len(session.recompiles) + len(session.guard_failures)
    # Each frame of a call stack is recorded once, by whichever of the two sees it first.
    both = (session.phases, session.artifacts, session.symbolic_shapes, session.stacks)
    assert found["phases"]["events"] + found["trace"]["events"] == sum(map(len, both))
    own = sum(row["overhead_s"] for row in found.values())
    assert own > 0
    assert page_of(session)["totals"]["own_s"] == pytest.approx(own)


def test_probing_says_what_would_work_and_leaves_nothing():
    found = {name: (status, reason) for name, status, reason in inside.probe_all()}
    idle = {n: reason for n, (status, reason) in found.items() if status == "off"}
    assert all(reason.startswith("nothing to watch: ") for reason in idle.values())
    calls = "available" if sys.version_info >= (3, 12) else "unavailable"
    assert found.pop("calls")[0] == calls, "it needs Python 3.12"
    assert {status for n, (status, _) in found.items() if n not in idle} == {"available"}
    assert inside.list_hooks() == []


def test_the_version_of_torch_is_the_same_before_torch_is_imported(python):
    """The installed package may be called 2.11.0 while torch calls itself 2.11.0+cu130."""
    code = (
        "import importlib.metadata, sys; importlib.metadata.version = lambda name: '0.0'\n"
        "from compilediag import sources; print(sources.torch_version(), 'torch' in sys.modules)"
    )
    assert python("-c", code).stdout == f"{torch.__version__} False\n"
