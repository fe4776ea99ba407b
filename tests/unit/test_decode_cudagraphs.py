"""torch's texts on CUDA graphs, taken apart."""

import pytest

from compilediag.decode.records.torch_messages import (
    describe_demotion,
    is_overwritten,
    parse_limit,
    parse_mismatch,
    parse_overwritten,
    parse_size_limit,
    parse_skip,
)

STACK = '  File "/home/me/model.py", line 12, in forward\n    x.add_(1)\n'
AT_MODEL = {"user_file": "/home/me/model.py", "user_line": 12, "user_code": "x.add_(1)"}
NOWHERE = {"user_file": None, "user_line": None, "user_code": None}


@pytest.mark.parametrize(
    ("message", "reason", "user"),
    [
        (
            f"skipping cudagraphs due to mutated inputs (1 instances). Found from : \n {STACK}",
            "mutated inputs (1 instances)",
            AT_MODEL,
        ),
        ("skipping cudagraphs due to mutated inputs (2 instances)", "mutated inputs (2 instances)", NOWHERE),
        (
            f"skipping cudagraphs due to skipping cudagraphs due to cpu device (arg0_1). Found from : \n {STACK}",
            "cpu device (arg0_1)",
            AT_MODEL,
        ),
        (
            f"skipping cudagraphs due to disabling cudagraphs due to incompatible op aten.foo Found from {STACK}\n",
            "incompatible op aten.foo",
            AT_MODEL,
        ),
        (
            "skipping cudagraphs due to graph with symbolic shapes inputs and "
            f"config.triton.cudagraph_skip_dynamic_graphs=True. Found from {STACK}\n",
            "graph with symbolic shapes inputs and config.triton.cudagraph_skip_dynamic_graphs=True",
            AT_MODEL,
        ),
        (
            f"skipping cudagraphs due to input storage mutation (1 instances). Found from:\n {STACK}",
            "input storage mutation (1 instances)",
            AT_MODEL,
        ),
        (
            "skipping cudagraphs due to multiple devices: device(type='cuda', index=0), device(type='cuda', index=1)",
            "multiple devices: device(type='cuda', index=0), device(type='cuda', index=1)",
            NOWHERE,
        ),
        ("skipping cudagraphs due to multiple devices: ", "no CUDA device in the graph", NOWHERE),
        ("skipping cudagraphs due to ['complex memory overlap']", "complex memory overlap", NOWHERE),
        (
            "skipping cudagraphs due to cudagraph capture requires the caching allocator; it is uncached",
            "cudagraph capture requires the caching allocator; it is uncached",
            NOWHERE,
        ),
        (
            "disabling cudagraphs for backward due to override_cudagraphs annotation",
            "disabling cudagraphs for backward due to override_cudagraphs annotation",
            NOWHERE,
        ),
        ("", None, NOWHERE),
    ],
)
def test_why_a_graph_was_skipped_and_on_which_line(message, reason, user):
    assert parse_skip(message) == {"reason": reason, **user}


def test_torchs_own_lines_in_a_stack_are_passed_over():
    deeper = f'{STACK}  File "/venv/site-packages/torch/nn/functional.py", line 99, in linear\n    return _linear(x)\n'
    assert parse_skip(f"skipping cudagraphs due to cpu device (a). Found from : \n {deeper}")["user_line"] == 12


CHANGED = (
    "static input data pointer changed.\n"
    f"input name: primals_2. data pointer changed from 1 to 2. input stack trace: {STACK}\n"
    "input name: primals_4. data pointer changed from 3 to 4. input stack trace: None\n"
)
NAMES = ("primals_1", "primals_2", "primals_3", "primals_4", "primals_5")


def test_the_inputs_that_broke_an_invariant():
    assert parse_mismatch(CHANGED, NAMES) == {
        "mismatch": "StaticInputIdxMismatch",
        "reason": "static input data pointer changed",
        "input": "primals_2 (input 1), primals_4 (input 3)",
        **AT_MODEL,
    }


def test_of_many_inputs_the_first_are_shown():
    lines = (f"input name: p{i}. data pointer changed from 1 to 2. input stack trace: None" for i in range(5))
    text = "cudagraph managed tensor data pointer changed.\n" + "\n".join(lines)
    details = parse_mismatch(text, ())
    assert (details["mismatch"], details["input"]) == ("CudagraphManagedIdxMismatch", "p0, p1, p2 and 2 more")
    assert details["user_file"] is None


@pytest.mark.parametrize(
    ("reason", "mismatch"),
    [
        ("expected dead indices before graph are live", "ExpectedDeadIndicesBeforeGraphMismatch"),
        ("the moon is in the wrong house", None),
    ],
)
def test_an_invariant_on_outputs_or_of_a_later_torch_names_no_input(reason, mismatch):
    assert parse_mismatch(f"{reason}.\n", NAMES) == {"mismatch": mismatch, "reason": reason, "input": None, **NOWHERE}


def test_the_limit_of_re_records():
    message = (
        "skipping cudagraph due to function 3 exceeding max re-recording limit (=128) on cudagraph node None due to "
        f"{CHANGED}."
    )
    details = parse_limit(message, NAMES)
    assert (details["mismatch"], details["user_line"]) == ("StaticInputIdxMismatch", 12)
    assert details["reason"] == "re-recorded more than 128 times, the last time as: static input data pointer changed"
    assert details["input"] == "primals_2 (input 1), primals_4 (input 3)"
    assert parse_limit("skipping cudagraphs due to mutated inputs (1 instances)", ()) is None


def test_the_threshold_of_changed_addresses_names_the_inputs():
    message = (
        "skipping cudagraph due to function 3 reaching the cudagraph-managed input re-recording threshold (=5) "
        "on cudagraph node 2 for input indices [1, 7]."
    )
    assert parse_limit(message, NAMES) == {
        "mismatch": "CudagraphManagedIdxMismatch",
        "reason": "the address of an input changed 5 times (cudagraph_managed_input_rerecord_limit)",
        "input": "primals_2 (input 1), input 7",
    }
    copied = describe_demotion([0, 1, 2, 3], NAMES)
    assert copied["input"] == "primals_1 (input 0), primals_2 (input 1), primals_3 (input 2) and 1 more"


def test_the_limit_of_sizes_has_the_compile_and_the_mode():
    message = (
        "[0/1] backward graph hit cudagraph_dynamic_shape_rerecord_limit=2; already-recorded shapes still replay, "
        "new shapes run eager."
    )
    assert parse_size_limit(message) == {
        "compile_id": "0/1",
        "mode": "backward",
        "reason": message.partition(" hit ")[2].strip("."),
    }
    assert parse_size_limit(message.replace("[0/1]", "[None]"))["compile_id"] is None
    assert parse_size_limit("[0/1] Recording cudagraph tree for symint key 5") is None


@pytest.mark.parametrize(
    ("kind", "advice"),
    [
        ("tensor", "To prevent overwriting, clone the tensor outside of torch.compile()"),
        ("gradient tensor", "This can happen with torch.compile(mode='reduce-overhead') and gradient accumulation"),
    ],
)
def test_the_error_of_an_overwritten_output(kind, advice):
    message = (
        f"Error: accessing {kind} output of CUDAGraphs that has been overwritten by a subsequent run. "
        f"Stack trace: {STACK.strip()}. {advice}."
    )
    assert is_overwritten(message)
    details = parse_overwritten(message)
    assert details["reason"].endswith("has been overwritten by a subsequent run.")
    assert {name: details[name] for name in AT_MODEL} == AT_MODEL
    assert not is_overwritten("CUDA out of memory")
