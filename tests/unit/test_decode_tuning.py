"""Rows of autotuning out of torch's own texts."""

import pytest

from compilediag.decode.records.autotune_choices import (
    TimedChoice,
    classify_choice,
    extract_reason,
    format_input,
    make_choices,
    parse_inputs,
    parse_parameters,
)
from compilediag.events import AutotuneChoice


@pytest.mark.parametrize(
    ("classes", "kind"),
    [
        (["ExternKernelCaller", "ChoiceCaller", "object"], "extern"),
        (["TritonTemplateCaller", "TritonTemplateCallerBase", "ChoiceCaller"], "triton"),
        (["Packed", "CppTemplateCaller", "ChoiceCaller"], "cpp"),
        (["CUTLASSTemplateCaller"], "cutlass"),
        (["SubgraphChoiceCaller"], "subgraph"),
        (["ROCmTemplateCaller", "ChoiceCaller"], "other"),
        ([], "other"),
    ],
)
def test_the_kind_of_a_choice_is_that_of_its_class_or_of_a_base(classes, kind):
    assert classify_choice(classes) == kind


def test_a_templates_description_gives_its_parameters():
    text = "ACC_TYPE='tl.float32', ALLOW_TF32=False, BLOCK_K=32, EVEN_K=True, TILE=(16, 8), num_stages=2, x=inf"
    assert parse_parameters(text) == {
        "ACC_TYPE": "tl.float32",
        "ALLOW_TF32": False,
        "BLOCK_K": 32,
        "EVEN_K": True,
        "TILE": "(16, 8)",
        "num_stages": 2,
        "x": "inf",
    }


@pytest.mark.parametrize(("text", "details"), [("", {}), (None, {}), ("as it is", {"description": "as it is"})])
def test_other_descriptions(text, details):
    assert parse_parameters(text) == details


def test_inputs_are_read_from_torchs_key():
    key = "[('cpu', 'torch.float32', 4, 32, 8, 256, 8, 1, 0), ('cuda', 'torch.bfloat16', 0)]"
    assert parse_inputs(key) == ["float32[4, 32, 8] strides [256, 8, 1] cpu", "bfloat16[] strides [] cuda"]
    for policy in ("eager", "cudagraph_auto:cudagraph_unroll=4"):  # torch 2.15
        assert parse_inputs(f"{key}:benchmark_policy={policy}") == parse_inputs(key)
    assert format_input("torch.int8", (2, 3), (3, 1), "cuda:1") == "int8[2, 3] strides [3, 1] cuda:1"


@pytest.mark.parametrize(("key", "details"), [(None, None), ("", None), ("[s0 + 1]", ["[s0 + 1]"]), ("[3]", ["[3]"])])
def test_a_key_that_is_no_list_of_inputs_stays_as_it_is(key, details):
    assert parse_inputs(key) == details


WORKER = """SubprocException: An exception occurred in a subprocess:

Name=triton_mm
Traceback (most recent call last):
  File "subproc_pool.py", line 390, in do_job
    raise RuntimeError(text)
torch._inductor.runtime.triton_compat.OutOfResources: out of resource: shared memory, Required: 524288
"""


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("RuntimeError: two\n  lines", "RuntimeError: two lines"),
        (
            WORKER,
            "torch._inductor.runtime.triton_compat.OutOfResources: out of resource: shared memory, Required: 524288",
        ),
        (
            "Oddity: Traceback of nothing\nthat has an error's name",
            "Oddity: Traceback of nothing that has an error's name",
        ),
        ("x" * 600, "x" * 497 + "..."),
    ],
)
def test_a_reason_is_one_line_and_of_a_traceback_its_last(text, reason):
    assert extract_reason(text) == reason


def test_a_time_that_is_no_number_is_a_failure_with_a_reason():
    timed = [
        TimedChoice("mm", "extern", time_ms=0.5, is_winner=True),
        TimedChoice("slow", time_ms=float("inf")),
        TimedChoice("odd", time_ms=float("nan")),
        TimedChoice("big", time_ms=float("inf"), fail_reason="out of resource"),
        TimedChoice("late", stage="precompile", fail_reason="TimeoutError: 3600 s"),
    ]
    run = AutotuneChoice(time_ns=7, tuner="select_algorithm", op="mm", run_id="r", function="f", line=3)
    details = make_choices(run, timed)
    assert [row.time_ms for row in details] == [0.5, None, None, None, None]
    assert [row.fail_reason for row in details] == [
        None,
        "timed as infinite",
        "timed as not a number",
        "out of resource",
        "TimeoutError: 3600 s",
    ]
    assert {(row.run_id, row.op, row.tuner, row.function, row.line, row.time_ns) for row in details} == {
        ("r", "mm", "select_algorithm", "f", 3, 7)
    }
    assert [row.is_winner for row in details] == [True, None, None, None, None]


def test_what_a_choice_knows_better_than_its_tuning():
    timed = TimedChoice("c", time_ns=9, device="cuda:1", from_cache="memory", parameters={})
    row = make_choices(AutotuneChoice(time_ns=7, device="cuda:0", from_cache="local"), [timed])[0]
    assert (row.time_ns, row.device, row.from_cache, row.parameters) == (9, "cuda:1", "memory", None)
