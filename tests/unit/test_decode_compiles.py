"""Decode CompilationMetrics as torch 2.13 writes them. The metrics here are shortened from real ones."""

import pytest

from compilediag.decode.records.compilation_metrics import make_compile

METRICS = {
    "compile_id": "0/1",
    "co_name": "forward",
    "co_filename": "/home/ada/model.py",
    "co_firstlineno": 30,
    "start_time_us": 1_000_000,
    "end_time_us": 1_500_000,
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
    "recompile_reason": "0/0: tensor 'x' size mismatch at index 0. expected 3, actual 4",
    "restart_reasons": set(),
    "fail_type": None,
    "fail_reason": None,
}


def event(known=None, **changed):
    return make_compile({**METRICS, **changed}, known or {})


def test_times_are_seconds_and_nanoseconds_since_1970():
    found = event()
    assert (found.time_ns, found.duration_s) == (1_000_000_000, 0.5)
    assert (found.dynamo_s, found.aot_s, found.inductor_s, found.codegen_s) == (0.49, 0.3, 0.2, 0.1)
    assert found.triton_s is None


def test_counts_and_names_are_torchs():
    found = event()
    assert (found.function, found.file, found.line) == ("forward", "/home/ada/model.py", 30)
    counts = (found.guard_count, found.guard_latency_us, found.graph_ops, found.graph_nodes, found.graph_inputs)
    assert counts == (9, 78.0, 2, 4, 1)
    assert found.cache_size == 1
    assert (found.is_recompile, found.outcome, found.trigger) == (True, "ok", "dynamo")


def test_what_metrics_lack_is_taken_from_the_frame():
    found = event({"backend": "inductor", "attempt": 2, "function": "other"})
    assert (found.backend, found.attempt, found.function) == ("inductor", 2, "forward")
    backward = event({"function": "forward", "file": "m.py", "line": 3}, is_forward=False, co_name=None,
                     co_filename=None, co_firstlineno=None)  # fmt: skip
    assert (backward.function, backward.file, backward.line) == ("forward", "m.py", 3)


def test_a_backward_is_no_recompile_of_its_own():
    found = event(is_forward=False, recompile_reason=None, graph_op_count=None)
    assert (found.trigger, found.is_recompile, found.outcome, found.attempt) == ("lazy_backward", None, "ok", None)


def test_compiled_autograd_is_identified_by_its_id():
    assert event(compile_id="!2/0/1").trigger == "compiled_autograd"


def test_metrics_of_run_time_are_no_compile():
    assert event(is_runtime=True) is None


@pytest.mark.parametrize(
    ("changed", "outcome", "limit"),
    [
        ({}, "ok", None),
        ({"graph_op_count": 0}, "empty", None),
        ({"graph_op_count": None}, "empty", None),
        ({"fail_type": "SkipFrame", "fail_reason": "no"}, "skipped", None),
        ({"fail_type": "Unsupported", "fail_reason": "Call to print"}, "failed", None),
        ({"fail_type": "BackendCompilerFailed", "fail_reason": "boom"}, "failed", None),
        (
            {
                "fail_type": "FailOnRecompileLimitHit",
                "fail_reason": "Dynamo recompile limit exceeded\n  Explanation: ...\n Limit type: recompile_limit",
            },
            "skipped",
            "recompile_limit",
        ),
    ],
)
def test_outcomes(changed, outcome, limit):
    found = event(**changed)
    assert (found.outcome, found.limit) == (outcome, limit)
    assert (found.fail_type, found.fail_reason) == (changed.get("fail_type"), changed.get("fail_reason"))


def test_restart_reasons_are_a_list_in_a_fixed_order():
    assert event(restart_reasons={"b", "a"}).restart_reasons == ["a", "b"]
    assert event(restart_reasons=None).restart_reasons is None


def test_duration_falls_back_to_torchs_own_and_to_missing():
    assert event(end_time_us=None).duration_s == 0.48
    assert event(end_time_us=None, duration_us=None).duration_s is None


def test_metrics_of_another_version_with_fields_missing_give_missing_columns():
    found = make_compile({"compile_id": "0/0", "start_time_us": 5})
    assert found.time_ns == 5_000
    assert (found.function, found.guard_count, found.duration_s, found.restart_reasons) == (None, None, None, None)
