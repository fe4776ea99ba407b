"""Stacks, symbolic shapes and problems of exports in a watch, whether or not another tool listens to torch's trace."""

import json
import logging

import pandas as pd
import pytest
import torch
from torch._logging import structured, trace_structured

import compilediag as cd
from tests.live import recorded

TRACE = logging.getLogger("torch.__trace")


class Listener(logging.Handler):
    """Another tool, for which torch builds every record."""

    def emit(self, record):
        pass


@pytest.fixture
def listening():
    listener = Listener()
    TRACE.addHandler(listener)
    yield
    TRACE.removeHandler(listener)


def watched(program, detail="full"):
    torch._dynamo.reset()
    with cd.watch(detail=detail) as session:
        program()
    return session


def rows(frame):
    """The rows without what each watch has of its own; of a compile key, the number of the attempt stays."""
    frame = frame.assign(compile_key=frame["compile_key"].str.partition(".")[2])
    own = [name for name in frame.columns if name not in ("event_id", "time", "compile_id", "torch_stack", "source")]
    return [tuple(None if pd.isna(v) else v for v in row) for row in frame[own].itertuples(index=False)]


def test_symbolic_shapes_are_the_same_whoever_listens(request):
    alone = watched(recorded.shapes)
    request.getfixturevalue("listening")
    beside = watched(recorded.shapes)
    assert rows(alone.symbolic_shapes) == rows(beside.symbolic_shapes)
    assert set(alone.symbolic_shapes["action"]) == {"created", "guarded", "suppressed", "specialized"}
    # The stacks too, but for where in this test the two were called.
    for one, other in zip(alone.symbolic_shapes["torch_stack"], beside.symbolic_shapes["torch_stack"], strict=True):
        assert alone.stack(one)[-20:] == beside.stack(other)[-20:]
    assert alone.sources.set_index("name").loc["trace", "dropped"] == 0


def test_a_watch_leaves_nothing_in_torchs_table_of_names():
    """A log that begins later tells each name at its first use."""
    before = dict(structured.INTERN_TABLE)
    watched(recorded.failures)
    new = structured.INTERN_TABLE.keys() - before.keys()
    # torch itself notes the files of a compile's callers, watched or not.
    assert not [name for name in new if name.endswith("symbolic_shapes.py")]


def test_a_compile_knows_who_called_it():
    session = watched(recorded.shapes, detail="lean")
    for key in session.compiles["stack"]:
        stack = session.stack(key)
        assert any(frame.endswith(" shapes") for frame in stack) and "compilediag" not in stack[-1]
        assert stack[-1].rpartition(" ")[2] in ("branch", "fixed")
    lines = session.stacks.query("function == 'shapes'")["code"].tolist()
    assert lines == ["branch(torch.ones(6, 2), 3)", "branch(torch.ones(2, 2), 2)", "fixed(torch.ones(5))"]


def test_failures_have_the_users_line():
    compiles = watched(recorded.failures).compiles.set_index("function")
    assert compiles.loc["breaks", "user_file"] == recorded.__file__
    assert compiles.loc["breaks", "user_line"] == compiles.loc["breaks", "line"] + 2


def test_an_export_that_is_not_sound():
    session = watched(recorded.export)
    problems = session.export_problems.set_index("problem")
    assert set(problems.index) == {"missing_fake_kernel", "mismatched_fake_kernel", "data_dependent"}
    assert problems.loc["data_dependent", "user_code"] == "if c.item() > 2:"
    assert "exported_program" in set(session.artifacts["name"])
    assert {f.rule for f in session.findings()} >= {"export_missing_fake_kernel", "export_data_dependent"}


# What vLLM compiles: a backend writes vLLM's records with torch's own function


def write_artifact(name, body):
    payload = body if isinstance(body, str) else json.dumps(body)
    trace_structured("artifact", metadata_fn=lambda: {"name": name, "encoding": "json"}, payload_fn=lambda: payload)


def write_graph(name, text):
    trace_structured("graph_dump", metadata_fn=lambda: {"name": name}, payload_fn=lambda: text)


def compile_in_pieces(graph, inputs):
    write_artifact("vllm_compilation_config", {"prefix": "backbone", "mode": "3", "compile_sizes": "1, 8"})
    for start, end in ((1, 1), (1, 64)):
        body = {"submod_name": "submod_0", "compile_range_start": start, "compile_range_end": end}
        write_artifact("vllm_piecewise_compile_start", body)
        if start == end:
            write_graph("vllm_submod_0", graph.print_readable(print_output=False))
    write_artifact("vllm_execution_code", "def execution_fn(): ...")
    return graph.forward


@pytest.mark.parametrize("is_heard", [False, True], ids=["alone", "beside another listener"])
def test_pieces_of_vllm_are_rows_of_the_compile(is_heard, request):
    if is_heard:
        request.getfixturevalue("listening")
    session = watched(lambda: torch.compile(lambda x: (x + 1) * 2, backend=compile_in_pieces)(torch.ones(3)))
    [config], rows = session.vllm_configs.to_dict("records"), session.vllm_compiles
    assert (config["part"], config["mode"], config["compile_sizes"]) == ("backbone", "VLLM_COMPILE", [1, 8])
    assert rows[["range_start", "range_end"]].to_numpy().tolist() == [[1, 1], [1, 64]]
    assert rows["graph_ops"].tolist() == [2, 2] and rows["duration_s"].notna().all()
    [key] = session.compiles["compile_key"]
    assert {config["compile_key"], *rows["compile_key"]} == {key}
    assert {"vllm_submod_0", "vllm_execution_code"} <= set(session.artifacts["name"])
