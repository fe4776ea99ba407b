"""What single records of a log become: compiles, graph breaks, cache lookups, artifacts."""

import pytest

from .log_builder import BEGIN_US, artifact, compile_, event, metrics, read_log, record, start

#: Of torch 2.13, shortened.
METRICS = {
    "co_name": "forward",
    "co_filename": "/home/ada/model.py",
    "co_firstlineno": 30,
    "duration_us": 480_000,
    "is_forward": True,
    "guard_count": 9,
    "guard_latency_us": 78.0,
    "graph_op_count": 2,
    "graph_node_count": 4,
    "graph_input_count": 1,
    "accumulated_cache_size": 1,
    "dynamo_cumulative_compile_time_us": 490_000,
    "aot_autograd_cumulative_compile_time_us": 300_000,
    "inductor_cumulative_compile_time_us": 200_000,
    "inductor_code_gen_cumulative_compile_time_us": 100_000,
    "triton_compile_time_us": None,
    "restart_reasons": [],
    "fail_type": None,
    "fail_reason": None,
    "recompile_reason": "0/0: tensor 'x' size mismatch at index 0. expected 3, actual 4",
}


def read_compiles(folder, *logs):
    rows = read_log(folder, "".join(logs)).compiles
    return rows.astype(object).where(rows.notna(), None).to_dict("records")


def read_compile(folder, compile_id="0/1", **changed):
    (row,) = read_compiles(folder, metrics(compile_id=compile_id, **{**METRICS, **changed}))
    return row


def select(row, *names):
    return [row[name] for name in names]


def test_a_compile_has_torchs_names_counts_and_times(tmp_path):
    row = read_compile(tmp_path)
    assert row["time"].value == BEGIN_US * 1000
    seconds = ("duration_s", "dynamo_s", "aot_s", "inductor_s", "codegen_s", "triton_s")
    assert select(row, *seconds) == [1.0, 0.49, 0.3, 0.2, 0.1, None]
    assert select(row, "function", "file", "line") == ["forward", "/home/ada/model.py", 30]
    counts = ("guard_count", "guard_latency_us", "graph_ops", "graph_nodes", "graph_inputs", "cache_size")
    assert select(row, *counts) == [9, 78.0, 2, 4, 1, 1]
    assert select(row, "is_recompile", "outcome", "trigger") == [True, "ok", "dynamo"]


@pytest.mark.parametrize(
    ("changed", "columns"),
    [
        ({"graph_op_count": 0}, {"outcome": "empty", "limit": None}),
        ({"graph_op_count": None}, {"outcome": "empty"}),
        ({"fail_type": "SkipFrame", "fail_reason": "no"}, {"outcome": "skipped", "fail_reason": "no"}),
        ({"fail_type": "Unsupported", "fail_reason": "Call to print"}, {"outcome": "failed", "limit": None}),
        ({"fail_type": "BackendCompilerFailed", "fail_reason": "boom"}, {"outcome": "failed"}),
        (
            {
                "fail_type": "FailOnRecompileLimitHit",
                "fail_reason": "Dynamo recompile limit exceeded\n  Explanation: ...\n Limit type: recompile_limit",
            },
            {"outcome": "skipped", "limit": "recompile_limit"},
        ),
        (
            {"is_forward": False, "recompile_reason": None, "graph_op_count": None},
            {"trigger": "lazy_backward", "is_recompile": None, "outcome": "ok", "attempt": None},
        ),
        ({"compile_id": "!2/0/1"}, {"trigger": "compiled_autograd"}),
        ({"restart_reasons": ["b", "a"]}, {"restart_reasons": ["a", "b"]}),
        ({"end_time_us": None}, {"duration_s": 0.48}),
        (
            {"end_time_us": None, "duration_us": None, "dynamo_cumulative_compile_time_us": None},
            {"duration_s": None},
        ),
    ],
    ids=str,
)
def test_what_the_metrics_say(tmp_path, changed, columns):
    row = read_compile(tmp_path, **changed)
    assert {name: row[name] for name in columns} == columns


def test_what_metrics_lack_is_taken_from_the_frame(tmp_path):
    nameless = {"co_name": None, "co_filename": None, "co_firstlineno": None}
    (row,) = read_compiles(tmp_path, start(function="step"), metrics(is_forward=False, **nameless))
    assert select(row, "function", "line") == ["step", 30]


def test_metrics_of_run_time_are_no_compile(tmp_path):
    assert len(read_compiles(tmp_path, compile_(), metrics(is_runtime=True, compile_id="0/1"))) == 1


def test_metrics_of_another_version_with_fields_missing_give_missing_columns(tmp_path):
    (row,) = read_compiles(tmp_path, record("compilation_metrics", {"compile_id": "0/0", "start_time_us": BEGIN_US}))
    assert row["time"].value == BEGIN_US * 1000
    assert select(row, "function", "guard_count", "duration_s", "restart_reasons") == [None] * 4


# Graph breaks

HEAD = "Graph break in user code at /home/ada/model.py:12\nGraph Break Reason: "
TEXT = """Failed to trace builtin operator
  Explanation: Dynamo does not know how to trace builtin operator `print`
    with argument types ['<unknown type>'] (has_kwargs False)
  Hint: Avoid calling builtin `print` with argument types.
  Hint:
  Hint: If you are attempting to call a logging function,
    you can try adding it to `torch._dynamo.config.reorderable_logging_functions`.

  Developer debug context: builtin print [<class 'X'>] False

 For more details about this graph break, please visit: https://meta-pytorch.github.io/x/gb0059.html

User code traceback:
  File "/home/ada/model.py", line 12, in forward
    print(x)"""


def read_breaks(folder, text):
    log = compile_() + artifact("dynamo_graph_break_reason", HEAD + text, compile_id="0/0", at=0.5)
    return read_log(folder, log).graph_breaks.to_dict("records")


def test_a_break_of_torch_2_13(tmp_path):
    (found,) = read_breaks(tmp_path, TEXT)
    assert select(found, "reason", "break_id") == ["Failed to trace builtin operator", "GB0059"]
    assert found["explanation"].endswith("builtin operator `print` with argument types ['<unknown type>'] "
                                         "(has_kwargs False)")  # fmt: skip
    assert len(found["hints"]) == 2 and found["hints"][1].endswith("config.reorderable_logging_functions`.")
    assert select(found, "user_file", "user_line", "user_code") == ["/home/ada/model.py", 12, "print(x)"]


def test_a_text_without_headings_is_the_reason_and_the_rest_is_missing(tmp_path):
    (found,) = read_breaks(tmp_path, "generic_jump TensorVariable()\n")
    assert found["reason"] == "generic_jump TensorVariable()"
    assert not any(isinstance(found[name], (str, list)) for name in ("break_id", "explanation", "hints", "user_code"))


# Cache lookups; tests/unit/test_logged_lookups.py has the ways in which torch writes them down


@pytest.mark.parametrize(
    ("name", "fields", "columns"),
    [
        ("fx_graph_cache_hit", {"time_saved_ns": 2_500_000_000}, {"outcome": "hit", "saved_s": 2.5}),
        ("autograd_cache_hit", {"time_saved_ms": 1500}, {"cache": "aot_autograd", "outcome": "hit", "saved_s": 1.5}),
        ("fx_graph_cache_miss", {"time_taken_ns": 500_000_000}, {"outcome": "miss", "taken_s": 0.5}),
        ("fx_graph_cache_disabled", {}, {"cache": "fx_graph", "outcome": "disabled"}),
        ("aotautograd_cache_hit", {"cache_status_detailed": "guard_miss"}, {"outcome": "hit"}),
        (
            "autograd_cache_bypass",
            {"cache_bypass_reason": "Unsupported call_method"},
            {"outcome": "bypass", "reason": "Unsupported call_method"},
        ),
        (
            "fx_graph_cache_miss",
            {"cache_status_detailed": "guard_miss", "cache_status_guard_expr": "4 <= L['t0']"},
            {"outcome": "guard_miss", "guard": "4 <= L['t0']"},
        ),
        ("fx_graph_cache_hits", {}, None),
        ("my_fx_graph_cache_hit", {}, None),
    ],
)
def test_an_announced_lookup(tmp_path, name, fields, columns):
    session = read_log(tmp_path, start() + event("i", name, at=1.0, args={"key": "fabc", **fields}) + metrics(2))
    rows = session.cache_lookups.to_dict("records")
    found = [{"tier": row["tier"], "key": row["key"], **{one: row[one] for one in columns}} for row in rows]
    assert found == ([] if columns is None else [{"tier": "local", "key": "fabc", **columns}])


# Artifacts


@pytest.mark.parametrize(
    ("kind", "fields", "name"),
    [
        ("dynamo_output_graph", {"sizes": {}}, "dynamo_output_graph"),
        ("inductor_output_code", {"filename": "x.py"}, "inductor_output_code"),
        ("artifact", {"name": "inductor_pre_grad_graph", "encoding": "string"}, "inductor_pre_grad_graph"),
        ("artifact", {"encoding": "string"}, "artifact"),
        ("artifact", {"name": 5}, "artifact"),
    ],
)
def test_the_text_of_a_record_is_an_artifact(tmp_path, kind, fields, name):
    session = read_log(tmp_path, compile_() + record(kind, fields, "graph()", compile_id="2/1"))
    (row,) = session.artifacts.query("compile_id == '2/1' and name != 'trace_records'").to_dict("records")
    assert (row["name"], session.artifact(row["event_id"])) == (name, "graph()")


@pytest.mark.parametrize(
    ("fields", "compile_id"),
    [
        ({"frame_id": 2, "frame_compile_id": 1}, "2/1"),
        ({"compiled_autograd_id": 4, "frame_id": 2, "frame_compile_id": 1}, "!4/2/1"),
        ({"compiled_autograd_id": 0}, "!0"),
        ({"frame_id": 2}, None),
        ({}, None),
    ],
)
def test_compile_ids_are_put_together_as_torch_prints_them(tmp_path, fields, compile_id):
    log = compile_() + record("graph_text", {}, "graph()", compile_id=None, **fields)
    (found,) = read_log(tmp_path, log).artifacts.query("name == 'graph_text'")["compile_id"]
    assert (found if isinstance(found, str) else None) == compile_id
