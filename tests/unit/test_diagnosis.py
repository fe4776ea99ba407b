"""Findings as a whole: how recompiles are grouped, described, weighted and ranked."""

import random
from dataclasses import replace

import pytest

from compilediag.diagnosis import diagnose, fix_code
from compilediag.events import GUARD_KINDS, Recompile, RowList, StackFrame
from tests.unit.tables_builder import (
    FORWARD,
    called,
    changes,
    compiled,
    decision,
    failure,
    graph_break,
    lookup,
    recompile,
    sizes,
    source,
    tables,
)


def only(found):
    assert len(found) == 1, [f.title for f in found]
    return found[0]


def test_the_promise_in_one_line():
    found = only(diagnose(tables(*sizes("4", "6", "7", "9", "12", lost_s=1.525))))
    assert found.title == "forward (model.py:30) recompiled 4x, 6.1 s lost: x.shape[0] was 4, then 6, 7, 9, 12"
    assert found.suggestion.startswith("Mark it dynamic before the call: torch._dynamo.maybe_mark_dynamic(x, 0).")
    assert found.fix == {"dynamic_sources": "L['x']"}
    assert found.severity == "high"
    assert found.evidence == (1, 2, 3, 4)
    assert found.details == ("4", "6", "7", "9", "12")
    assert found.seconds_lost == pytest.approx(6.1)
    assert (found.function, found.file, found.line) == tuple(FORWARD.values())


def test_one_compile_a_function_and_no_more_is_healthy():
    healthy = tables(
        compiled(),
        compiled(function="other", line=60),
        compiled(function="torch_dynamo_resume_in_forward_at_31", outcome="empty"),
        lookup("miss"),
        lookup("saved"),
        lookup("hit", saved_s=3.0),
        source("recompiles", "active"),
        source("replays", "off", "not requested", "not_requested"),
        source("trace", "off", "detail is lean", "detail_level"),
    )
    assert diagnose(healthy) == []


def test_causes_differ_by_function_and_by_source():
    rows = [
        *sizes("4", "6"),
        *sizes("4", "6", tensor="y"),
        *sizes("4", "7", function="backbone", line=80),
        *sizes("4", "8", file="/home/ada/other.py"),
    ]
    found = diagnose(tables(*rows))
    assert len(found) == 4
    assert len({(f.function, f.file, f.title) for f in found}) == 4


def test_the_same_change_in_several_functions_is_one_cause():
    rows = [
        *sizes("4", "6"),
        *sizes("4", "6", function="torch_dynamo_resume_in_forward_at_33"),
        *sizes("4", "6", function="backbone", line=80),
    ]
    found = only(diagnose(tables(*rows)))
    assert found.title.startswith("forward (model.py:30) and 2 more functions recompiled 3x, 3.0 s lost: x.shape[0]")
    assert [place[0] for place in found.places][::2] == ["forward", "backbone"]
    assert "one recompile is usual" in found.suggestion


def test_a_mode_of_the_whole_program_is_one_cause_in_all_functions():
    rows = [recompile("grad_mode", "global_state", "True", "False", function=f"f{n}", line=n) for n in range(3)]
    assert only(diagnose(tables(*rows))).rule == "grad_mode"


def test_another_object_in_another_function_is_another_cause():
    rows = [recompile("g", "identity", "sin", "cos", function=name) for name in ("one", "two")]
    assert len(diagnose(tables(*rows))) == 2


def test_what_also_fails_at_the_recompiles_of_other_causes_is_ranked_by_them_too():
    """The counter fails at every call, so fixing the sizes alone saves nothing."""
    rows = [
        *changes("self.step", "value", "0", "1", lost_s=1.0),
        *[recompile("x.size()[0]", "tensor_size", "4", str(n), n, lost_s=1.5) for n in (5, 6)],
        *[failure("self.step", "value", n, expected="1", actual="5") for n in (5, 6)],
        *[failure("x.size()[0]", "tensor_size", n, expected="4", actual=str(n)) for n in (5, 6)],
    ]
    counter, size = diagnose(tables(*rows))
    assert (counter.source, counter.seconds_lost, counter.seconds_at_stake) == ("self.step", 1.0, 4.0)
    assert (size.source, size.seconds_lost, size.seconds_at_stake) == ("x.size()[0]", 3.0, 3.0)
    assert "also failed in 2 recompiles attributed to other causes; fix both." in counter.suggestion


def test_the_same_line_in_instances_of_a_module_is_one_cause():
    rows = [
        recompile(
            f"self.layers[{i}].n",
            "value",
            str(i),
            str(i + 1),
            i + 1,
            reason=f"0/0: self._modules['layers']._modules['{i}'].n == {i}  "
            "# return x * self.n  # model.py:31 in forward (HINT: torch.compile considers integer attributes of the "
            "nn.Module to be static.)",
        )
        for i in range(3)
    ]
    found = only(diagnose(tables(*rows)))
    assert found.count == 3
    assert "self.layers[*].n was 0, then 1, 2, 3" in found.title
    assert found.fix == {
        "dynamic_sources": "L['self']._modules['layers']._modules['0'].n,"
        "L['self']._modules['layers']._modules['1'].n,L['self']._modules['layers']._modules['2'].n"
    }


def test_inputs_that_differ_by_index_are_two_causes():
    rows = [*sizes("4", "6", tensor="args[0]"), *sizes("4", "6", tensor="args[1]")]
    assert len(diagnose(tables(*rows))) == 2


def test_ranked_by_seconds_and_what_was_not_timed_counts_nothing():
    rows = [
        *sizes("4", "6", "7", tensor="cheap", lost_s=0.1),
        *sizes("4", "6", "7", tensor="dear", lost_s=9.0),
        *sizes("4", "6", "7", tensor="untimed", lost_s=None),
    ]
    found = diagnose(tables(*rows))
    assert [f.title.split(": ")[1].split(".")[0] for f in found] == ["dear", "cheap", "untimed"]
    assert [f.seconds_lost for f in found] == sorted((f.seconds_lost for f in found), reverse=True)
    assert "not timed" in found[-1].title
    assert found[-1].seconds_lost == 0


def test_a_cause_timed_in_part_says_so():
    rows = [*sizes("4", "6", lost_s=2.0), recompile("x.size()[0]", "tensor_size", "6", "7", 2, lost_s=None)]
    assert "recompiled 2x, 2.0 s lost (1 of 2 not timed): " in only(diagnose(tables(*rows))).title


@pytest.mark.parametrize(
    ("seconds", "count", "severity"),
    [(0.1, 3, "medium"), (0.1, 5, "high"), (3.0, 2, "high"), (1.5, 2, "medium")],
)
def test_severity_comes_from_seconds_and_number(seconds, count, severity):
    rows = sizes(*(str(n) for n in range(10, 11 + count)), lost_s=seconds)
    assert only(diagnose(tables(*rows))).severity == severity


def test_what_failed_at_the_same_calls_is_named_and_fixed_too():
    rows = sizes("4", "6", "8")
    beside = [failure("y.size()[1]", "tensor_size", n) for n in (1, 2)]
    first, second = diagnose(tables(*rows, *beside, failure("x.size()[0]", "tensor_size", 1)))
    assert "maybe_mark_dynamic(x, 0); torch._dynamo.maybe_mark_dynamic(y, 1)" in first.suggestion
    assert (second.source, second.count, second.seconds_lost, second.seconds_at_stake) == ("y.size()[1]", 0, 0.0, 2.0)
    assert second.title.startswith("forward (model.py:30) recompiled 2x because of this and other causes: y.shape[1]")

    first, second = diagnose(tables(*rows, failure("flag", "value", 1), failure("flag", "value", 2)))
    assert first.suggestion.endswith("At the same calls these guards failed too: flag (value).")
    assert second.source == "flag"


def test_a_scheduler_changes_the_rates_of_all_groups_of_parameters():
    rates = ("0.1", "0.05", "0.025")
    groups = [
        failure(f"self.param_groups[{i}]['lr']", "value", n, expected="1", actual=f"{i}.{n}")
        for i in (0, 1)
        for n in (1, 2)
    ]
    beside = [failure("self.param_groups[0]['weight_decay']", "value", n, expected="0.1", actual="0.2") for n in (1, 2)]
    rate, decay = diagnose(tables(*changes("self.param_groups[0]['lr']", "value", *rates), *groups, *beside))
    assert (rate.source, rate.count) == ("self.param_groups[0]['lr']", 2)
    assert decay.source == "self.param_groups[0]['weight_decay']"


def test_what_changes_in_all_layers_of_a_cache_is_one_cause():
    kinds = [failure(f"kwargs['cache'].layers[{i}].kind", "value", 1, expected="'a'", actual="'b'") for i in (0, 1)]
    length, kind = diagnose(tables(recompile("kwargs['ids'].size()[1]", "tensor_size", "4", "6"), *kinds))
    assert (length.source, kind.source) == ("kwargs['ids'].size()[1]", "kwargs['cache'].layers[0].kind")


def test_a_block_mask_follows_the_length_that_it_is_made_for():
    mask = [
        failure("block_mask.seq_lengths[0]", "value", 1, expected="256", actual="384"),
        failure("block_mask.kv_indices.size()[3]", "tensor_size", 1, expected="2", actual="4"),
    ]
    found = only(diagnose(tables(recompile("key.size()[2]", "tensor_size", "256", "384"), *mask)))
    assert found.source == "key.size()[2]"
    special = failure("block_mask.q_indices.size()[2]", "tensor_size", 1, expected="1", actual="2")
    length, blocks = diagnose(tables(recompile("key.size()[2]", "tensor_size", "128", "256"), special))
    assert (length.source, blocks.rule) == ("key.size()[2]", "size_zero_one")


def test_what_failed_in_another_entry_or_only_once_of_many_is_not():
    rows = sizes("4", "6", "8", "10")
    found = diagnose(tables(*rows, failure("flag", "value", 3, entry=0), failure("mode", "value", 2, entry=1)))
    assert [one.source for one in found] == ["x.size()[0]", "mode"]
    assert "flag" not in found[0].suggestion
    assert "mode" not in found[0].suggestion


def test_a_limit_comes_before_its_causes_and_names_them():
    rows = changes("k", "value", "'a'", "'b'", "'c'", "'d'")
    limit = compiled(outcome="skipped", limit="recompile_limit", duration_s=None)
    found = diagnose(tables(*rows, limit, compiled(function="other", line=1)))
    assert [f.rule for f in found] == ["recompile_limit", "string_changes"]
    assert found[0].severity == "high"
    assert found[0].title == "forward (model.py:30) hit recompile_limit: it silently runs eagerly from then on"
    assert "k was 'a', then 'b', 'c', 'd' (3x)" in found[0].suggestion
    assert found[0].fix is None, "more versions are no way to treat a string that varies"
    assert "Its eager calls were not counted; watch(calls=True) counts them" in found[0].suggestion


def test_a_limit_that_torch_compile_was_given_is_raised_there_and_by_no_setting():
    limit = compiled(outcome="skipped", limit="recompile_limit", limit_value=2, limit_argument=True)
    rows = changes("k", "identity", "<function a>", "<function b>", "<function c>")
    (found, _) = diagnose(tables(*rows, limit))
    assert "hit recompile_limit (2, an argument of torch.compile)" in found.title
    assert "torch._dynamo.config" not in found.suggestion and found.fix is None
    assert all("config" not in change.code for change in found.changes)


def test_a_limit_at_which_torch_raised_says_so():
    raised = {"limit": "recompile_limit", "limit_value": 8, "outcome": "failed", "on_failure": "fullgraph"}
    (found,) = diagnose(tables(compiled(**raised)))
    assert found.title.endswith("hit recompile_limit: torch raised an exception (fullgraph=True)")
    assert "eager" not in found.suggestion


def test_each_region_has_its_own_causes_and_its_own_limit():
    one = [replace(row, region=1) for row in sizes("4", "6", "8") if isinstance(row, Recompile)]
    two = [replace(row, region=2) for row in changes("k", "value", "'a'", "'b'") if isinstance(row, Recompile)]
    limit = compiled(outcome="skipped", limit="recompile_limit", region=2)
    found = {finding.rule: finding for finding in diagnose(tables(*one, *two, limit))}
    assert found["size_changes"].count == 2 and found["string_changes"].count == 1
    assert "region 2 of isolate_recompiles" in found["recompile_limit"].title
    assert "k was 'a', then 'b'" in found["recompile_limit"].suggestion
    assert "x.shape[0]" not in found["recompile_limit"].suggestion


def test_equal_changes_in_two_regions_are_two_causes():
    rows = [replace(row, region=region) for region in (0, 1) for row in sizes("4", "6") if isinstance(row, Recompile)]
    assert [finding.count for finding in diagnose(tables(*rows))] == [1, 1]


def test_a_limit_says_how_many_calls_ran_eagerly_since_if_they_were_counted():
    limit = compiled(outcome="skipped", limit="recompile_limit", duration_s=None)
    counting = source("calls", "active")
    (found,) = diagnose(tables(limit, called("eager", 90, each=0.1), called("eager", 10, 2, each=0.1), counting))
    assert found.title == "forward (model.py:30) hit recompile_limit: 100 calls ran eagerly since, 11.8 s"
    assert "not counted" not in found.suggestion
    (found,) = diagnose(tables(limit, called("eager", 9, function="other"), counting))
    assert found.title.endswith("hit recompile_limit: no call ran eagerly since"), "the limit raised, say"


def test_a_function_that_falls_back_to_eager_says_how_many_calls_did():
    reason = "torch.compile gave up, falling back to eager"
    failed = compiled(outcome="failed", fail_type="Unsupported", fail_reason=reason)
    (found,) = diagnose(tables(failed, called("eager", 3), source("calls", "active")))
    assert found.rule == "runs_eagerly" and found.title.endswith("; 3 calls ran eagerly since, 120 ms")
    (found,) = diagnose(tables(failed))
    assert found.title.endswith("falling back to eager")


def test_a_limit_takes_the_fix_of_its_causes_before_it_raises_the_limit():
    limit = compiled(outcome="skipped", limit="recompile_limit")
    found = diagnose(tables(*sizes("4", "6", "7"), *sizes("4", "6", "7", tensor="y"), limit))
    assert found[0].rule == "recompile_limit"
    assert set(found[0].fix["dynamic_sources"].split(",")) == {"L['x']", "L['y']"}


def test_a_limit_is_raised_only_if_each_compiled_version_is_expected():
    rows = changes("g", "identity", "the same object", "E.a (another object)", "E.b (another object)")
    limit = compiled(outcome="skipped", limit="recompile_limit", duration_s=None)
    assert diagnose(tables(*rows, limit))[0].fix == {"recompile_limit": 64}
    found = diagnose(tables(*rows, *changes("k", "value", "'a'", "'b'", "'c'"), limit))
    assert found[0].rule == "recompile_limit" and found[0].fix is None


def test_a_limit_whose_causes_were_not_seen_says_so():
    found = only(diagnose(tables(compiled(outcome="skipped", limit="accumulated_recompile_limit"))))
    assert "What recompiled it was not collected." in found.suggestion
    assert "torch._dynamo.config.accumulated_recompile_limit" in found.suggestion
    assert found.fix == {"accumulated_recompile_limit": 2048}


def test_failed_compiles_show_the_first_line_of_the_error():
    failed = compiled(outcome="failed", fail_type="NoSuchOp", fail_reason="no such op\nFile x, line 3", duration_s=7.0)
    found = only(diagnose(tables(failed)))
    assert found.rule == "compile_failed"
    assert found.title == "forward (model.py:30) failed to compile once, 7.0 s lost: NoSuchOp: no such op"
    announced = compiled(
        outcome="failed", fail_type="BackendCompilerFailed", fail_reason="backend='b' raised:\nOSError: x"
    )
    assert only(diagnose(tables(announced))).title.endswith("backend='b' raised: OSError: x")


def test_graph_breaks_are_grouped_by_reason_and_line():
    breaks = [graph_break(), graph_break(), graph_break(user_line=50), graph_break(reason="Dynamic control flow")]
    found = diagnose(tables(*breaks))
    assert sorted(f.count for f in found) == [1, 1, 2]
    twice = next(f for f in found if f.count == 2)
    assert twice.title == "graph break at model.py:33, 2x: Failed to trace builtin operator"
    assert "Avoid calling builtin `print`." in twice.suggestion
    assert twice.suggestion.endswith("/gb/gb0059.html.")


def test_breaks_of_one_kind_at_many_lines_are_a_storm():
    breaks = [graph_break(user_line=line) for line in (33, 35, 37, 35)]
    found = only(diagnose(tables(*breaks)))
    assert (found.rule, found.severity, found.count) == ("graph_break_storm", "medium", 4)
    assert "graph breaks at 3 lines of model.py (33, 35 and 37), 4x" in found.title


@pytest.mark.parametrize(
    ("hint", "code", "says", "fix"),
    [
        (
            "Set `torch._dynamo.config.capture_scalar_outputs = True`",
            "n = x.sum().item()",
            "capture_scalar_outputs = True",
            {"capture_scalar_outputs": True},
        ),
        (
            "you can try adding it to `torch._dynamo.config.reorderable_logging_functions`.",
            'print("loss", loss)',
            "torch._dynamo.config.reorderable_logging_functions.add(print)",
            None,
        ),
        (
            "Add the logging method to `torch._dynamo.config.ignore_logging_functions`.",
            'self.log.info("x")',
            "torch._dynamo.config.ignore_logging_functions.add(self.log.info)",
            None,
        ),
        ("Avoid calling it.", "f(x)", "Avoid calling it.", None),
        # torch 2.13, with the name of the setting as torch writes it.
        (
            "Set torch._dynamo.trace_autograd_ops=True",
            "loss.backward()",
            "torch._dynamo.config.trace_autograd_ops = True",
            {"trace_autograd_ops": True},
        ),
        (
            "Set `torch._dynamo.config.use_numpy_random_stream` to False.",
            "np.random.rand()",
            "torch._dynamo.config.use_numpy_random_stream = False",
            {"use_numpy_random_stream": False},
        ),
        # A setting that changes more than the break is none that a program makes.
        (
            "Enable compiled autograd by setting torch._dynamo.config.compiled_autograd = True.",
            "f(x)",
            "Enable compiled autograd",
            None,
        ),
        ("It may be possible to write Dynamo tracing rules for this code.", "f(x)", "Move it out", None),
    ],
)
def test_a_graph_break_comes_with_torchs_own_remedy(hint, code, says, fix):
    found = only(diagnose(tables(graph_break(hints=["Report an issue", hint][-1:], user_code=code))))
    assert says in found.suggestion
    assert found.fix == fix
    assert found.changes


def test_a_graph_break_has_the_recompiles_of_the_code_after_it():
    resumed = sizes("4", "6", function="torch_dynamo_resume_in_forward_at_33", file="/home/ada/model.py")
    found = diagnose(tables(graph_break(user_file="/home/ada/model.py", user_line=33), *resumed))
    (broken,) = [f for f in found if f.rule == "graph_break"]
    assert broken.suggestion.endswith("The code after it is compiled by itself: 1 recompile of it.")
    assert broken.seconds_at_stake == 1.0


def test_graph_breaks_of_torchs_optimizers_are_not_reported():
    assert diagnose(tables(graph_break(user_file="/usr/lib/python3/dist-packages/torch/optim/optimizer.py"))) == []
    assert len(diagnose(tables(graph_break(user_file="/home/ada/torch_optim/optimizer.py")))) == 1
    # torch breaks the graph in `optimizer.step()`, and the user's line is the one that calls it.
    on_purpose = graph_break(break_id="GB0025", user_code="optimizer.step()")
    assert diagnose(tables(on_purpose)) == []
    assert len(diagnose(tables(replace(on_purpose, user_code="torch._dynamo.graph_break()")))) == 1


TORCH = "/usr/lib/python3/dist-packages/torch"
WRAPPER, LAYER, LIBRARY = (
    f"{TORCH}/nn/parallel/distributed.py",
    f"{TORCH}/nn/modules/rnn.py",
    "/usr/lib/python3.11/x.py",
)


@pytest.mark.parametrize(
    ("file", "compiled_file", "caller", "is_reported"),
    [
        (WRAPPER, f"{TORCH}/_dynamo/external_utils.py", "/home/ada/train.py", False),
        (LAYER, f"{TORCH}/_dynamo/external_utils.py", "/home/ada/train.py", True),
        # What a session has that was recorded before the user's line was.
        (WRAPPER, "/home/ada/model.py", "/home/ada/train.py", True),
        # A context manager: a function of Python's library, and who calls it.
        (LIBRARY, LIBRARY, WRAPPER, False),
        (LIBRARY, LIBRARY, "/home/ada/model.py", True),
    ],
)
def test_a_graph_break_that_no_line_of_the_user_leads_to_is_a_cost(
    file, compiled_file, caller, is_reported, session_of
):
    frames = [
        StackFrame(time_ns=1, stack="a", caller=None, file=caller, line=3, function="forward"),
        StackFrame(time_ns=1, stack="b", caller="a", file=compiled_file, line=7, function="inner"),
    ]
    row = compiled(file=compiled_file, function="inner", outcome="empty", duration_s=2.0, stack="b")
    session = session_of(row, *frames, graph_break(user_file=file, user_line=9, user_code="self.logger.log()"))
    assert [one.rule for one in session.findings()] == (["graph_break"] if is_reported else [])
    costs = {cost.kind: cost.seconds for cost in session.plan().costs}
    assert costs.get("torchs_breaks") == (None if is_reported else 2.0)


def test_a_function_that_torch_leaves_to_python_is_no_failure():
    text = "Call to `print`\n\ngraph break in loop\n  Skipping the frame and falling back to eager, as ..."
    row = compiled(outcome="failed", fail_type="Unsupported", fail_reason=text)
    found = only(diagnose(tables(row)))
    assert found.rule == "runs_eagerly"
    assert "is not compiled and runs eagerly: Call to `print`, in a loop" in found.title


def test_a_graph_break_without_hints_shows_the_explanation():
    found = only(diagnose(tables(graph_break(hints=None, break_id=None, explanation="Dynamo can't see into C."))))
    assert found.suggestion == "Dynamo can't see into C."
    assert only(diagnose(tables(graph_break(hints=[], break_id=None)))).suggestion == "torch gave no hint."


def test_bypasses_of_a_cache_are_grouped_by_reason():
    found = diagnose(tables(*[lookup("bypass", reason="custom op")] * 2, lookup("bypass", cache="aot_autograd")))
    assert [(f.count, f.title) for f in found] == [
        (2, "fx_graph was bypassed 2x: custom op"),
        (1, "aot_autograd was bypassed once: no reason given"),
    ]


@pytest.mark.parametrize("status", ["unavailable", "failed", "off"])
def test_a_source_that_is_not_active_is_reported(status):
    found = only(diagnose(tables(source("recompiles", status, "this torch has no such hook"))))
    assert found.rule == "not_observed"
    assert found.severity == "low"
    assert found.title == "Not collected: recompiles: this torch has no such hook"


def test_dropped_events_are_reported():
    found = only(diagnose(tables(source("trace", "active", dropped=7))))
    assert found.rule == "dropped"
    assert "7 events" in found.title


def test_torch_made_it_dynamic_and_it_is_bound_to_one_value_even_so():
    rows = sizes("4", "6", "7")
    found = only(diagnose(tables(*rows, decision("L['x']", "0", 1))))
    assert found.rule == "specialized"
    assert found.fix is None
    assert "mark_dynamic" not in found.suggestion
    elsewhere = only(diagnose(tables(*rows, decision("L['x']", "1", 1), decision("L['y']", "0", 1))))
    assert elsewhere.rule == "size_changes"


HOSTILE = ["<script>alert(1)</script>", "\x1b[31mred\x07", "\ud800 lone", "a\nb\tc", "((((" * 500, "9" * 5000]
HOSTILE += ["", "é☃", "'"]


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_strings_stay_on_one_line_and_break_nothing(text):
    rows = [
        recompile(
            text, kind, text, text + "2", n, function=text, file=text, user_file=text, user_code=text, reason=text
        )
        for n, kind in enumerate((*GUARD_KINDS, text), 1)
    ]
    others = [
        compiled(outcome="failed", fail_type=text, fail_reason=text, function=text, file=text),
        compiled(limit=text, function=text, file=text),
        graph_break(reason=text, break_id=text, hints=[text], explanation=text, user_file=text, user_code=text),
        lookup("bypass", cache=text, reason=text),
        source(text, "failed", text),
        decision(text, text, 1),
        failure(text, text, guard=text),
    ]
    found = diagnose(tables(*rows, *others))
    assert len(found) > len(GUARD_KINDS) // 2
    for finding in found:
        assert not any(c in finding.title + finding.suggestion for c in "\n\x1b\x07\t")
        assert len(finding.title) < 800
        assert len(finding.suggestion) < 2000


@pytest.mark.parametrize("kind", [*GUARD_KINDS, None])
def test_every_kind_of_guard_has_a_finding_when_all_columns_are_missing(kind):
    bare = recompile(
        None, kind, compile_id=None, closest_compile_id=None, lost_s=None, function=None, file=None, line=None
    )
    found = only(diagnose(tables(bare, compiled(function=None, file=None, line=None, duration_s=None, outcome=None))))
    assert found.title.startswith("unknown function recompiled once, not timed: ")
    assert found.suggestion
    assert found.severity == "low"


def test_a_recompile_without_a_place_a_compile_or_values_has_a_finding():
    bare = Recompile(time_ns=1, function="forward", guard_source="x.size()[0]", guard_kind="tensor_size")
    assert only(diagnose(RowList([bare]))).title == "forward recompiled once, not timed: x.shape[0] changed"


def many_recompiles(count=2000):
    rows, rng = [], random.Random(7)
    kinds = ["tensor_size", "value", "tensor_stride", "identity", "symbolic_shape", "other"]
    for n in range(count):
        place = {"function": f"f{n % 200}", "file": f"/home/ada/m{n % 20}.py", "line": n % 200}
        kind, values = kinds[n % 6], [str(rng.randrange(1000)) for _ in range(2)]
        name = f"self.layers[{n % 48}].x"
        reason = f"0/{n}: {name} == {values[0]}  # y = x + k  # m.py:7 in f"
        described = {"reason": reason, "user_file": "/home/ada/m.py", "user_line": 7, "user_code": "y = x + k"}
        rows.append(recompile(name + ".size()[0]", kind, *values, n, **place, **described))
        rows.extend(failure(f"{name}.size()[{d}]", "tensor_size", n, guard=reason) for d in range(8))
    return rows


def test_the_same_events_give_the_same_findings_whatever_their_order():
    events = [replace(event, event_id=number) for number, event in enumerate(many_recompiles(100), 1)]
    shuffled = random.Random(3).sample(events, len(events))
    rows = RowList(events)
    assert diagnose(rows) == diagnose(rows) == diagnose(RowList(shuffled))
    assert sum(found.count for found in diagnose(rows)) == len(rows.rows(Recompile)) == 100


def test_fixes_are_written_as_statements():
    assert fix_code(None) is None
    assert fix_code({"dynamic_sources": "L['x']", "recompile_limit": 64}) == (
        "torch.compiler.config.dynamic_sources = \"L['x']\"; torch._dynamo.config.recompile_limit = 64"
    )
    assert fix_code({"use_duck_shape": False}) == "torch.fx.experimental._config.use_duck_shape = False"
