"""Functions that are not compiled: what failed, what was left to Python, and what had nothing to compile."""

from dataclasses import replace

from compilediag.diagnosis import diagnose
from compilediag.events import StackFrame
from tests.unit.tables_builder import compiled, graph_break, recompile, tables

BREAK = "Failed to trace builtin operator\n  Explanation: none.\n  Hint: Avoid `print`.\n"
MARK = "Constraints violated (L['x'].size()[0])!\n  - You marked L['x'].size()[0] as dynamic but it is 4. Remove it.\n"


def failed(reason, kind="Unsupported"):
    return compiled(outcome="failed", fail_type=kind, fail_reason=reason)


def test_a_graph_break_that_torch_met_once_left_the_function_to_python():
    (found,) = diagnose(tables(failed(BREAK)))
    assert found.rule == "runs_eagerly"
    assert found.suggestion.endswith("torch's hint: Avoid `print`.")


def test_findings_about_a_call_name_the_users_line():
    user = StackFrame(time_ns=1, stack="user", function="train", file="/home/ada/train.py", line=28)
    own = StackFrame(time_ns=1, stack="own", caller="user", function="forward", file="/home/ada/model.py", line=30)
    compiles = [replace(failed(BREAK), stack="own"), compiled(outcome="empty", stack="own")]
    for compile in compiles:
        (found,) = diagnose(tables(user, own, compile))
        assert (found.call_file, found.call_line) == ("/home/ada/train.py", 28)
    (unknown,) = diagnose(tables(failed(BREAK)))
    assert unknown.call_file is None


def test_a_graph_break_that_torch_met_again_was_raised():
    (found,) = diagnose(tables(failed(BREAK), failed(BREAK)))
    assert found.rule == "compile_failed"
    assert "fullgraph=True) allows no graph break" in found.suggestion


def test_of_a_mark_that_the_code_does_not_allow_torchs_own_sentence_is_reported():
    (found,) = diagnose(tables(failed(MARK, "ConstraintViolationError")))
    assert found.rule == "compile_failed"
    assert found.suggestion.startswith(
        "You marked L['x'].size()[0] as dynamic but it is 4. Remove it. Use torch._dynamo.maybe"
    )


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


def test_a_function_that_never_had_anything_to_compile_lost_nothing():
    """A wrapper of a library, before its graph break: torch compiles it again at each change."""
    entries = [compiled(compile_id=f"0/{n}", outcome="empty", is_recompile=n > 0, duration_s=0.01) for n in range(2)]
    found = diagnose(tables(*entries, graph_break(), recompile("mask", "value", "not None", "None")))
    assert {one.rule for one in found} == {"optional_argument", "graph_break"}
    assert not any("silently" in one.suggestion for one in found)


def test_torchs_id_of_a_graph_break_counts_and_its_words_only_without_one():
    page = "https://meta-pytorch.github.io/compile-graph-break-site/gb/gb{}.html"
    loop, skip = (failed(f"Call to f\n  For more details: {page.format(number)}") for number in ("7000", "4297"))
    (in_loop,), (skipped,) = diagnose(tables(loop)), diagnose(tables(skip))
    assert (in_loop.rule, skipped.rule) == ("runs_eagerly", "runs_eagerly")
    assert ", in a loop" in in_loop.title and ", in a loop" not in skipped.title
    assert in_loop.suggestion != skipped.suggestion
    (other,) = diagnose(tables(failed(f"graph break in loop\n  {page.format('0059')}")))
    assert ", in a loop" not in other.title
    (remedy,) = diagnose(tables(graph_break(break_id="GB0124", hints=None)))
    assert remedy.fix == {"capture_scalar_outputs": True}


def test_a_call_at_which_torch_gives_up_gets_a_function_of_its_own():
    """As for an LSTM: no loop or block is around it, and torch's setting for it makes code that raises on a CPU."""
    hint = "  Hint: Set torch._dynamo.config.allow_rnn=True to enable experimental support"
    (found,) = diagnose(tables(failed(f"Attempted to wrap RNN\n{hint}\n For more details: gb/gb0014.html")))
    assert "@torch.compiler.disable" in found.suggestion and found.fix is None
    assert "loop" not in found.suggestion


FIXED = (
    "Constraints violated (L['x'].size()[0])! For more information, run with TORCH_LOGS=\"+dynamic\".\n"
    "  - You marked L['x'].size()[0] as dynamic but your code specialized it to be a constant (4). If you're using "
    "mark_dynamic, either remove it or use maybe_mark_dynamic.\n\nUser stack:\n"
    '  File "/m/train.py", line 3, in step\n    return forward(x, y)\n'
    '  File "/m/model.py", line 14, in forward\n    return x + y\n           ^^^^^\n'
)


def test_the_line_that_does_not_allow_a_mark_is_named_and_the_other_inputs_too():
    (found,) = diagnose(tables(failed(FIXED, "torch.fx.experimental.symbolic_shapes.ConstraintViolationError")))
    assert (found.user_file, found.user_line, found.user_code) == ("/m/model.py", 14, "return x + y")
    assert found.suggestion.startswith("`return x + y` (model.py:14) fixes x.shape[0] to 4")
    assert "mark that one as well" in found.suggestion
    assert ["maybe_mark_dynamic" in change.text for change in found.changes] == [False, True]


def test_a_mark_that_asks_for_more_than_a_branch_allows():
    reason = (
        "Constraints violated (L['x'].size()[0])!\n  - Not all values of L['x'].size()[0] = L['x'].size()[0] in the "
        "specified range L['x'].size()[0] <= 10 satisfy the generated guard 4 <= L['x'].size()[0]\n"
    )
    (found,) = diagnose(tables(failed(reason, "ConstraintViolationError")))
    assert "compiled for 4 <= x.shape[0] only" in found.suggestion
    assert "min=..., max=..." in found.suggestion


def failed_trace(function, caller, **columns):
    """A compile that raised while torch traced a line; `caller` is the file of the function around the call."""
    stack = StackFrame(time_ns=1, stack="inner", caller="outer", function=function, file="/srv/train.py", line=9)
    outer = StackFrame(time_ns=1, stack="outer", function="fit", file=caller, line=3)
    traced = {"user_file": "/usr/lib/python3/inspect.py", "user_line": 2474, "stack": "inner", "function": function}
    row = compiled(outcome="failed", fail_reason="no __dict__", **{"fail_type": "AttributeError", **traced, **columns})
    (found,) = diagnose(tables(stack, outer, row))
    return found.suggestion


def test_a_line_that_torch_cannot_trace_is_named():
    assert failed_trace("step", "/srv/main.py").startswith("Keep the call that leads to inspect.py:2474 out of")
    assert "Find the step that fails" in failed_trace("step", "/srv/main.py", fail_type="BackendCompilerFailed")


def test_a_library_says_what_to_compile_instead():
    trainer = "/x/site-packages/lightning/pytorch/trainer/trainer.py"
    assert failed_trace("training_step", trainer).startswith("Compile the network, not the LightningModule")
    assert failed_trace("forward", trainer).startswith("Keep the call")


def forbidden(on_failure, line=12, **columns):
    """A compile at which torch raised, because a setting allows no graph break."""
    row = failed(BREAK)
    return replace(row, on_failure=on_failure, user_file="/home/ada/model.py", user_line=line, **columns)


def test_a_graph_break_that_fullgraph_forbids_was_raised_and_runs_nothing_eagerly():
    (found,) = diagnose(tables(forbidden("fullgraph")))
    assert (found.rule, found.user_line, found.severity) == ("compile_failed", 12, "high")
    assert "at model.py:12: torch.compile(fullgraph=True) allows no graph break" in found.title
    assert "without fullgraph=True" in found.suggestion and "runs eagerly" not in found.title


def test_each_line_at_which_a_block_forbids_a_graph_break_is_a_finding():
    found = diagnose(tables(*(forbidden("error_on_graph_break", line) for line in (12, 15, 15))))
    assert {(one.user_line, one.count) for one in found} == {(12, 1), (15, 2)}
    assert all("torch._dynamo.error_on_graph_break(False)" in one.suggestion for one in found)


def test_a_function_that_torchs_own_frame_calls_is_named_by_its_line():
    own = "/x/site-packages/torch/_dynamo/external_utils.py"
    (found,) = diagnose(tables(forbidden("error_on_graph_break", file=own, function="inner")))
    assert found.title.startswith("torch raised an exception once at model.py:12: ")


def test_a_frame_that_torch_skips_runs_eagerly_however_often_it_is_tried():
    (found,) = diagnose(tables(*(replace(failed(BREAK), on_failure="eager") for _ in range(2))))
    assert found.rule == "runs_eagerly"


def test_a_recompile_that_a_setting_forbids_is_not_a_fault_of_the_backend():
    (found,) = diagnose(tables(replace(failed("Recompiling function step", "RecompileError"), on_failure="raised")))
    assert found.suggestion.startswith("torch._dynamo.config.error_on_recompile allows no recompile.")
