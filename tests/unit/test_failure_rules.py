"""Functions that are not compiled: what failed, what was left to Python, and what had nothing to compile."""

from compilediag.diagnosis import diagnose
from tests.unit.tables_builder import compiled, graph_break, recompile, tables

BREAK = "Failed to trace builtin operator\n  Explanation: none.\n  Hint: Avoid `print`.\n"
MARK = "Constraints violated (L['x'].size()[0])!\n  - You marked L['x'].size()[0] as dynamic but it is 4. Remove it.\n"


def failed(reason, kind="Unsupported"):
    return compiled(outcome="failed", fail_type=kind, fail_reason=reason)


def test_a_graph_break_that_torch_met_once_left_the_function_to_python():
    (found,) = diagnose(tables(failed(BREAK)))
    assert found.rule == "runs_eagerly"
    assert found.suggestion.endswith("torch's hint: Avoid `print`.")


def test_a_graph_break_that_torch_met_again_was_raised():
    (found,) = diagnose(tables(failed(BREAK), failed(BREAK)))
    assert found.rule == "compile_failed"
    assert "fullgraph=True) allows no graph break" in found.suggestion


def test_of_a_mark_that_the_code_does_not_allow_torchs_own_sentence_is_reported():
    (found,) = diagnose(tables(failed(MARK, "ConstraintViolationError")))
    assert found.rule == "compile_failed"
    assert found.suggestion.startswith("You marked L['x'].size()[0] as dynamic but it is 4. Remove it. The code needs")


def test_a_first_call_with_nothing_to_compile_is_reported_where_no_graph_break_explains_it():
    empty = compiled(outcome="empty")
    (found,) = diagnose(tables(empty))
    assert (found.rule, found.severity) == ("nothing_to_compile", "low")
    assert [f.rule for f in diagnose(tables(empty, graph_break()))] == ["graph_break"]


def test_what_follows_a_graph_break_and_what_is_torchs_may_have_nothing_to_compile():
    resumed = compiled(function="torch_dynamo_resume_in_forward_at_31", outcome="empty")
    of_torch = compiled(file="/site-packages/torch/_dynamo/external_utils.py", outcome="empty")
    assert diagnose(tables(resumed, of_torch)) == []


def test_a_recompile_with_nothing_to_compile_says_that_the_compiled_code_is_lost():
    first = compiled()
    last = compiled(compile_id="0/1", outcome="empty", is_recompile=True, duration_s=0.01)
    (found,) = diagnose(tables(first, last, recompile("mask", "value", "not None", "None")))
    assert (found.rule, found.severity) == ("optional_argument", "medium")
    assert found.suggestion.endswith("silently runs the function eagerly and no longer uses its compiled code.")
