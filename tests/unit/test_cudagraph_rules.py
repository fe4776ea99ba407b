"""Findings about CUDA graphs: skips with advice, repeated captures, limits, overwritten outputs."""

import pytest

from compilediag.diagnosis import diagnose
from tests.unit.tables_builder import graph, tables

LINE = {"user_file": "/home/ada/model.py", "user_line": 33, "user_code": "x.add_(1)"}


def diagnose_events(*events):
    return diagnose(tables(*events))


def only(*events):
    (found,) = diagnose_events(*events)
    return found


NO_ADVICE = "PyTorch's page on CUDAGraph Trees lists what can't be captured."
#: As torch 2.11 and 2.13 say it, with and without what they put before it -> the reason that it is.
REASONS_TO_SKIP = {
    "mutated inputs (1 instances)": "mutated inputs",
    "skipping cudagraphs due to mutated inputs (2 instances)": "mutated inputs",
    "input storage mutation (1 instances)": "input storage mutation",
    "cpu device (primals_2)": "cpu device",
    "multiple devices: device(type='cuda', index=0), device(type='cuda', index=1)": "multiple devices",
    "no CUDA device in the graph": "no CUDA device in the graph",
    "graph with symbolic shapes inputs and config.triton.cudagraph_skip_dynamic_graphs=True": (
        "graph with symbolic shapes"
    ),
    "disabling cudagraphs due to incompatible op aten.nonzero.default": "incompatible op",
    "index_put_ fallback with boolean indexing is not compatible with CUDA graphs": "index_put_ fallback with boolean",
    "control flow operator: torch.cond": "control flow operator",
    "sparsity not handled. Please file issue for sparse inference weights": "sparsity not handled",
    "non-Tensor inputs": "non-Tensor inputs",
    "cudagraph capture requires the caching allocator; current allocator is uncached": (
        "cudagraph capture requires the caching allocator"
    ),
    "cpp-wrapper does not support graph partition yet": "cpp-wrapper",
    "disabling cudagraphs for backward due to override_cudagraphs annotation": "override_cudagraphs",
}


def test_each_of_torchs_reasons_to_skip_has_its_own_advice():
    advice = {reason: only(graph("skip", reason=reason)).suggestion for reason in REASONS_TO_SKIP}
    by_known = {known: advice[reason] for reason, known in REASONS_TO_SKIP.items()}
    assert advice == {reason: by_known[known] for reason, known in REASONS_TO_SKIP.items()}
    assert len(set(by_known.values())) == len(by_known) and NO_ADVICE not in by_known.values()


def test_a_reason_that_is_not_known_is_reported_unchanged():
    found = only(graph("skip", reason="something new"))
    assert found.title == "forward (model.py:30) runs without CUDA graphs: something new"
    assert found.suggestion == NO_ADVICE


def test_a_skip_is_reported_with_the_users_line_once_a_reason():
    same = {"reason": "mutated inputs (1 instances)", **LINE}
    found = diagnose_events(
        graph("skip", **same), graph("skip", 2, **same), graph("skip", mode="backward", reason="cpu device (x)")
    )
    assert [(f.rule, f.severity, f.count) for f in found] == [
        ("cudagraph_skip", "medium", 2),
        ("cudagraph_skip", "medium", 1),
    ]
    first, second = found
    assert (first.user_line, first.user_code) == (33, "x.add_(1)")
    assert second.title.startswith("forward (model.py:30), backward, runs without CUDA graphs: cpu device (x)")


def test_one_capture_again_is_usual_and_a_storm_names_the_input():
    again = {"mismatch": "StaticInputIdxMismatch", "input": "primals_4 (input 3)", "duration_ms": 100.0}
    assert diagnose_events(graph("record"), graph("rerecord", 2, **again)) == []
    found = only(*(graph("rerecord", n, **again) for n in range(6)))
    assert found.title == (
        "forward (model.py:30) was captured again 6x, 600 ms: a parameter, buffer or marked tensor was replaced "
        "(primals_4 (input 3))"
    )
    assert (found.severity, found.seconds_lost, found.details) == ("high", pytest.approx(0.6), ("primals_4 (input 3)",))
    assert "p.data.copy_(new)" in found.suggestion


#: The invariants of a captured graph, by torch's names.
INVARIANTS = ("StaticInputIdxMismatch", "CudagraphManagedIdxMismatch", "ExpectedDeadIndicesBeforeGraphMismatch")


def test_each_invariant_has_words_and_advice():
    found = [only(*(graph("rerecord", n, mismatch=mismatch) for n in (1, 2))) for mismatch in INVARIANTS]
    assert (
        len({finding.title for finding in found}) == len({finding.suggestion for finding in found}) == len(INVARIANTS)
    )
    unknown = only(*(graph("rerecord", n, mismatch="NewMismatch") for n in (1, 2)))
    assert all(finding.title != unknown.title and finding.suggestion != unknown.suggestion for finding in found)


def test_an_invariant_that_is_not_known_is_reported_in_torchs_words():
    found = only(graph("rerecord", reason="who knows"), graph("rerecord", 2, reason="who knows"))
    assert found.title.endswith("was captured again 2x: who knows")


def test_captures_for_many_sizes_are_reported_with_the_sizes():
    found = only(*(graph("record", n, duration_ms=200.0, sizes=f"{n}x3") for n in range(9)))
    assert (
        found.title == "forward (model.py:30) was captured for 9 sizes, 1.6 s after the first: 0x3, 1x3, 2x3 and 6 more"
    )
    assert (found.rule, found.severity, found.count) == ("cudagraph_sizes", "medium", 9)
    assert "cudagraph_capture_sizes" in found.suggestion
    assert diagnose_events(*(graph("record", n, duration_ms=200.0, sizes="4x3") for n in range(9))) == []


def test_captures_that_pile_up_on_each_other_are_reported():
    chain = [graph("record", n, graph_id=n, parent_id=n - 1 if n else None, duration_ms=100.0) for n in range(6)]
    found = only(*chain)
    assert found.title == (
        "forward (model.py:30) was captured 6x without a change of its inputs, each time after other graphs"
    )
    assert (found.severity, found.seconds_lost) == ("medium", pytest.approx(0.5))
    assert "cudagraph_mark_step_begin()" in found.suggestion
    assert diagnose_events(*chain[:4]) == []
    others = [graph("record", n, function_id=n, parent_id=n) for n in range(6)]
    assert diagnose_events(*others) == [], "each is a graph of its own"


def test_a_function_that_torch_gave_up_is_reported_once():
    again = [graph("rerecord", n, mismatch="CudagraphManagedIdxMismatch") for n in range(3)]
    assert [f.rule for f in diagnose_events(*again, graph("limit", 9))] == ["cudagraph_limit"]
    assert [f.rule for f in diagnose_events(*again, graph("limit", 9, function="g"))] == [
        "cudagraph_limit",
        "cudagraph_rerecord",
    ]


def test_a_limit_names_its_own_setting():
    found = only(graph("limit", mismatch="CudagraphManagedIdxMismatch", count=128))
    assert (found.rule, found.severity, found.count) == ("cudagraph_limit", "high", 1)
    assert "cudagraph_unexpected_rerecord_limit" in found.suggestion
    setting = "cudagraph_managed_input_rerecord_limit"
    managed = only(graph("limit", mismatch="CudagraphManagedIdxMismatch", reason=f"changed 5 times ({setting})"))
    assert setting in managed.suggestion and "cudagraph_unexpected_rerecord_limit" not in managed.suggestion
    sizes = only(graph("limit", reason="cudagraph_dynamic_shape_rerecord_limit=2; new shapes run eager"))
    assert "runs without CUDA graphs for new sizes" in sizes.title and "cudagraph_capture_sizes" in sizes.suggestion


def test_an_input_that_torch_copies_from_now_on_is_part_of_the_finding():
    changed = {"mismatch": "CudagraphManagedIdxMismatch", "input": "primals_2 (input 1)"}
    again = [graph("rerecord", n, **changed) for n in range(5)]
    assert "now copies it" not in only(*again).title
    assert "now copies it" not in only(*again, graph("demoted", 9, **changed, function="g")).title
    assert only(*again, graph("demoted", 9, **changed)).title.endswith("torch now copies it before each replay")


def test_a_function_that_never_leaves_its_warm_up_is_reported_once():
    found = only(graph("stuck", count=4, reason="pending backward"), graph("stuck", 2, count=8))
    assert found.title == "forward (model.py:30) ran in its warm-up 8x and was never captured: pending backward"
    assert "cudagraph_mark_step_begin()" in found.suggestion


def test_an_overwritten_output_is_reported_with_the_line_that_made_it():
    error = "Error: accessing tensor output of CUDAGraphs that has been overwritten by a subsequent run."
    found = only(graph("overwritten", reason=error, **LINE))
    assert (found.severity, found.user_code) == ("high", "x.add_(1)")
    assert ".clone()" in found.suggestion and "cudagraph_mark_step_begin()" in found.suggestion
    gradient = only(graph("overwritten", reason=error.replace("tensor output", "gradient tensor output")))
    assert "set them to None before each backward" in gradient.suggestion


def test_a_capture_that_failed_is_reported_with_its_error():
    found = only(graph("failed", reason="OutOfMemoryError: CUDA out of memory."))
    assert found.title == "forward (model.py:30) could not be captured once: OutOfMemoryError: CUDA out of memory."
    assert found.severity == "high"


def test_what_goes_well_is_no_finding():
    actions = ("warmup", "record", "replays", "partition", "user_capture")
    assert diagnose_events(*(graph(action, n, count=3) for n, action in enumerate(actions))) == []


def test_outputs_that_are_kept_past_the_next_run_are_reported_until_they_are_used():
    found = only(graph("invalidated", count=2, **LINE))
    assert (found.rule, found.severity, found.count) == ("cudagraph_invalidated", "low", 2)
    assert "clone()" in found.suggestion and "cudagraph_mark_step_begin()" in found.suggestion
    assert found.user_code == "x.add_(1)"
    both = diagnose_events(graph("invalidated", **LINE), graph("overwritten", 2, **LINE))
    assert [f.rule for f in both] == ["cudagraph_overwritten"]
    (gradient,) = diagnose_events(graph("invalidated", mode="backward"))
    assert ".grad tensors beforehand" in gradient.suggestion
    (used,) = diagnose_events(graph("invalidated", mode="backward", **LINE), graph("overwritten", 2, **LINE))
    assert used.rule == "cudagraph_overwritten" and ".grad tensors beforehand" in used.suggestion
