"""The plan, by hand-made tables whose smallest set of changes can be counted."""

import os
import subprocess
from dataclasses import replace

import pytest

from compilediag.diagnosis import CodeChange, Edit, diagnose
from compilediag.diagnosis.change import merge_settings
from compilediag.diagnosis.plan.make_plan import is_dynamic_change, merge_edits, order_changes
from tests.unit.session_builder import make_plan
from tests.unit.tables_builder import changes, compiled, failure, recompile, sizes, tables


@pytest.fixture
def plan_of(session_of):
    """`plan_of(*events)`: the plan of a session of just these rows."""
    return lambda *events, **facts: session_of(*events, **facts).plan()


def test_nothing_recompiled(plan_of):
    plan = plan_of(compiled())
    assert (plan.steps, plan.recompiles, plan.unresolved) == ((), 0, ())
    assert plan.headline == "Nothing recompiled"
    assert plan.code() == ""


def test_one_size(plan_of):
    plan = plan_of(compiled(duration_s=3.0), *sizes("4", "6", "9"))
    (step,) = plan.steps
    assert (plan.recompiles_saved, plan.seconds, plan.seconds_saved) == (2, 3.0, 2.0)
    assert plan.headline == "1 change removes 2 of 2 recompiles and saves 2.0 s of 3.0 s compile time"
    assert (step.recompiles_saved_alone, step.recompiles_saved) == (2, 2)
    assert step.values == ("4", "6", "9")
    assert plan.settings == {"dynamic_sources": "L['x']"}
    assert "dynamic_sources = \"L['x']\"" in plan.code()


def two_causes_at_the_same_calls():
    """A size and a counter that both fail at two recompiles; the counter alone fails at a third."""
    return [
        *sizes("4", "6", "9"),
        recompile("self.step", "value", "3", "4", 3),
        failure("self.step", "value", 1),
        failure("x.size()[0]", "tensor_size", 1),
        failure("self.step", "value", 2),
        failure("x.size()[0]", "tensor_size", 2),
        failure("self.step", "value", 3),
    ]


def test_a_recompile_needs_all_of_its_causes(plan_of):
    plan = plan_of(*two_causes_at_the_same_calls())
    counter, size = plan.steps
    assert (counter.expression, counter.recompiles_saved_alone, counter.recompiles_saved) == ("self.step", 1, 1)
    assert (size.expression, size.recompiles_saved_alone, size.recompiles_saved) == ("x.shape[0]", 0, 2)
    assert "Alone it saves nothing: `self.step` fails at the same calls." in size.saving
    assert plan.recompiles_saved == 2
    assert [left.reason for left in plan.unresolved] == ["torch makes a number dynamic after its first change"]


def test_what_is_expected_is_listed_with_the_reason(plan_of):
    size = recompile("x.size()[0]", "tensor_size", "4", "6", 2)
    plan = plan_of(*changes("self.training", "value", "True", "False"), size)
    assert [step.expression for step in plan.steps] == ["x.shape[0]"]
    (left,) = plan.unresolved
    assert "train()" in left.reason
    assert left.evidence == (1,)


def test_a_change_that_contributes_nothing_is_left_out(plan_of):
    """The size fails together with the mode each time, and no change resolves the mode."""
    rows = changes("self.training", "value", "True", "False")
    beside = [failure("x.size()[0]", "tensor_size", 1), failure("self.training", "value", 1)]
    plan = plan_of(*rows, *beside)
    assert plan.steps == ()
    assert plan.headline == "Found no change that removes any of 1 recompile"


def test_advice_that_only_makes_versions_fewer_saves_nothing_for_certain(plan_of):
    plan = plan_of(*changes("language", "value", "'en'", "'de'"))
    assert (plan.steps, plan.recompiles_saved) == ((), 0)
    (left,) = plan.unresolved
    assert left.reason.startswith("Keep it to few values")


def test_it_reads_as_text_and_as_html(plan_of):
    plan = plan_of(*two_causes_at_the_same_calls())
    text = str(plan)
    assert text.startswith(
        "2 changes remove 2 of 3 recompiles and save 2.0 s of 0 s compile time\n1. `self.step` has 2"
    )
    html = plan._repr_html_()
    assert (
        "<ol><li><code>self.step</code> has 2 values: 3, 4.<br>model.py:30<br>Compile with dynamic=None, the default, "
        "instead of dynamic=False.<br>Saves 1 of 3" in html
    )
    assert "<code>x.shape[0]</code> fails at some of the same calls." in html and "`" not in html
    assert all(len(line) <= 100 for line in text.splitlines())


def test_a_step_has_its_cause_as_its_title(plan_of):
    counter, size = plan_of(*two_causes_at_the_same_calls()).steps
    assert (size.title, size.title_values) == ("`x.shape[0]` has 3 values", ("4", "6", "9"))
    (counter,) = plan_of(*changes("self.step", "value", "1", "2", "3", "4")).steps
    assert (counter.title, counter.title_values) == ("`self.step` is a new number at every call", ("1", "2", "3", "4"))


def test_what_each_step_saves_beside_those_before_it(plan_of):
    plan = plan_of(*two_causes_at_the_same_calls())
    assert plan.gains == ((1, 1.0), (1, 1.0))
    assert [step["recompiles_gained"] for step in plan.to_dict()["steps"]] == [1, 1]


def test_what_runs_have_measured_is_the_headline(plan_of):
    plan = replace(
        plan_of(*sizes("4", "6", "9")), tried={"recompiles_before": 2, "recompiles_after": 1, "holds": False}
    )
    assert plan.headline == "1 change removes 1 of 2 recompiles"
    found = {"recompiles_before": 2, "recompiles_after": 0, "lines": 3, "holds": True}
    times = {"compile_seconds_before": 9.0, "compile_seconds_after": 4.0}
    proven = replace(plan, searched={**found, **times})
    assert proven.headline == "3 changed lines remove 2 of 2 recompiles and save 5.0 s of 9.0 s compile time"
    refuted = replace(plan, searched={**found, "holds": False}, tried=None)
    assert refuted.headline == plan_of(*sizes("4", "6", "9")).headline


SCRIPT = '''"""A training script."""
from torch import nn

def train(model, batches):
    for ids in batches:
        logits = model(ids)
    return logits
'''


LINE = "logits = model(ids)"


def plan_with(edits_or_settings, file):
    """A plan whose steps are at this file and have these edits or settings."""
    return make_plan(*({"file": str(file), **fields} for fields in edits_or_settings))


def test_a_patch_edits_the_users_file(tmp_path, monkeypatch):
    file = tmp_path / "train.py"
    file.write_text(SCRIPT)
    monkeypatch.chdir(tmp_path)
    edit = Edit(str(file), 6, "insert_before", LINE, "torch._dynamo.mark_dynamic(ids, 0)", code=LINE)
    plan = plan_with([{"edits": (edit,)}, {"settings": {"dynamic_sources": "L['n']"}}], file)
    (source,) = plan.changed_sources()
    assert (source.place, source.cell) == ("train.py", None)
    added = {line.text.strip(): line.step for line in source.lines if line.mark == "+"}
    setting = "torch.compiler.config.dynamic_sources = \"L['n']\""
    assert (added[setting], added["torch._dynamo.mark_dynamic(ids, 0)"]) == (2, 1)
    assert [line.number for line in source.lines if line.text == f"        {LINE}"] == [6]
    patch = plan.patch()
    subprocess.run(["git", "apply", "-"], input=patch, text=True, check=True, cwd=tmp_path)
    changed = file.read_text()
    assert "        torch._dynamo.mark_dynamic(ids, 0)\n        logits = model(ids)\n" in changed
    assert "import torch\n" in changed and "torch.compiler.config.dynamic_sources = \"L['n']\"\n" in changed
    assert changed.startswith('"""A training script."""\nfrom torch import nn\n')
    compile(changed, "train.py", "exec")


def test_a_proven_patch_is_what_changes(plan_of):
    patch = "--- a/train.py\n+++ b/train.py\n@@ -3,2 +3,2 @@\n a = 1\n-b = 2\n+b = 3\n"
    plan = replace(plan_of(*sizes("4", "6", "9")), searched={"patch": patch, "holds": True})
    (source,) = plan.changed_sources()
    lines = [tuple(line) for line in source.lines]
    assert lines == [(3, " ", "a = 1", None), (4, "-", "b = 2", None), (None, "+", "b = 3", None)]


def test_a_file_that_was_changed_since_gives_no_patch(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "train.py"
    file.write_text(SCRIPT.replace("logits = model(ids)", "logits = model(ids, None)"))
    edit = Edit(str(file), 6, "insert_before", LINE, "torch._dynamo.mark_dynamic(ids, 0)", code=LINE)
    assert plan_with([{"edits": (edit,)}], file).patch() is None
    file.unlink()
    cell = replace(edit, file="Cell In[3]")
    for edits, place in (((edit,), file), ((cell,), "Cell In[3]"), ((), file)):
        assert plan_with([{"edits": edits}], place).patch() is None


def test_a_setting_is_put_only_into_a_file_that_has_the_recorded_line(tmp_path, monkeypatch):
    """A session from elsewhere may name any file of this machine, and a page shows the lines around the change."""
    monkeypatch.chdir(tmp_path)
    settings = {"settings": {"dynamic_sources": "L['n']"}, "line": 6, "code": "logits = model(ids)"}
    file = tmp_path / "train.py"
    file.write_text(SCRIPT)
    assert "dynamic_sources" in plan_with([settings], file).patch()
    assert plan_with([{**settings, "code": None}], file).patch() is None
    assert plan_with([{**settings, "line": 5}], file).patch() is None
    for name, text in (("secrets.env", SCRIPT), ("large.py", SCRIPT + "#" * 1_000_000)):
        other = tmp_path / name
        other.write_text(text)
        assert plan_with([settings], other).patch() is None
    os.mkfifo(tmp_path / "pipe.py")
    assert plan_with([settings], tmp_path / "pipe.py").patch() is None


def test_sizes_of_one_setting_are_one_step(plan_of):
    rows = [*sizes("4", "6"), recompile("x.size()[1]", "tensor_size", "16", "24", 2)]
    reasons = [replace(row, reason=f"tensor 'x' size mismatch at index {n}") for n, row in enumerate(rows)]
    plan = plan_of(*reasons, detail="lean")
    (step,) = plan.steps
    assert step.expression == "x.shape[0], x.shape[1]"
    # Which shapes there were is not known: only the guard that failed first was recorded.
    assert step.values == ("4", "6", "16", "24")
    assert step.causes == ("x.shape[0] was 4, then 6", "x.shape[1] was 16, then 24")
    assert plan.settings == {"dynamic_sources": "L['x']"}


def test_sizes_0_and_1_stay_and_are_listed(plan_of):
    plan = plan_of(*sizes("4", "6", "9", "1"))
    assert (plan.recompiles_saved, plan.recompiles) == (2, 3)
    (left,) = plan.unresolved
    assert (left.evidence, left.reason) == ((3,), "torch compiles 0 and 1 on their own, even if the value is dynamic")


def test_a_counter_that_starts_at_0_is_made_dynamic(plan_of):
    reason = "L['self'].step == 0  # integer attributes of the nn.Module"
    plan = plan_of(*changes("self.step", "value", "0", "1", "2", "3", reason=reason))
    assert (plan.recompiles_saved, plan.unresolved) == (3, ())


def test_settings_are_merged_into_one_assignment_each():
    block = merge_settings(
        [
            {"dynamic_sources": "L['x']", "recompile_limit": 16},
            {"dynamic_sources": "L['y'],L['x']", "recompile_limit": 64},
            {"unbacked_sources": "L['y']"},
        ]
    )
    assert block.settings == {"dynamic_sources": "L['x']", "recompile_limit": 64, "unbacked_sources": "L['y']"}
    assert block.conflicts == ()


def test_settings_that_exclude_each_other_are_reported():
    block = merge_settings([{"use_duck_shape": False}, {"use_duck_shape": True}])
    assert block.settings == {"use_duck_shape": False}
    assert block.conflicts == ("`use_duck_shape` is wanted as False and as True; the plan keeps False.",)


def test_only_the_first_guards_are_known_from_a_log(plan_of):
    assert "can have more causes" in " ".join(plan_of(*sizes("4", "6")).notes)
    assert plan_of(*sizes("4", "6"), failure("x.size()[0]", "tensor_size", 1)).notes == ()


def test_each_of_two_causes_has_its_own_change(plan_of):
    """The finding of one names both sizes; the steps of the plan name one each."""
    rows = sizes("4", "6", "8")
    guard = "tensor 'y' size mismatch at index 1"
    beside = [failure("y.size()[1]", "tensor_size", n, expected=f"{n}0", actual="90", guard=guard) for n in (1, 2)]
    plan = plan_of(*rows, *beside, failure("x.size()[0]", "tensor_size", 1))
    assert [step.settings for step in plan.steps] == [{"dynamic_sources": "L['x']"}, {"dynamic_sources": "L['y']"}]
    assert plan.settings == {"dynamic_sources": "L['x'],L['y']"}
    assert plan.steps[0].saving == "Alone it saves nothing: `y.shape[1]` fails at the same calls."


def test_what_is_expected_and_only_came_with_another_cause_is_not_listed(plan_of):
    """A mode of training changes at the same call as the gradient mode, which is the one that is listed."""
    rows = [
        recompile("grad_mode", "global_state", "True", "False"),
        failure("grad_mode", "global_state", 1, expected="True", actual="False"),
        failure("self.drop.training", "value", 1, expected="True", actual="False"),
    ]
    plan = plan_of(compiled(), *rows)
    (left,) = plan.unresolved
    assert left.what == "grad_mode was True, then False"
    (found,) = diagnose(tables(compiled(), *rows))
    assert found.rule == "grad_mode" and "self.drop.training" in found.suggestion


def test_an_expected_cause_is_listed_where_it_is_all_that_keeps_a_recompile(plan_of):
    plan = plan_of(
        compiled(),
        recompile("x.size()[0]", "tensor_size", "4", "6"),
        failure("x.size()[0]", "tensor_size", 1, expected="4", actual="6"),
        failure("self.is_ready", "value", 1, expected="False", actual="True"),
        recompile("x.size()[0]", "tensor_size", "6", "8", 2),
    )
    assert (plan.recompiles, plan.recompiles_saved) == (2, 1)
    assert [left.what for left in plan.unresolved] == ["self.is_ready was False, then True"]


def test_what_a_library_offers_is_a_step(plan_of):
    rows = changes("self.active_adapter", "value", "'a'", "'b'", "'c'", file="/site-packages/peft/peft_model.py")
    (step,) = plan_of(compiled(), *rows).steps
    assert "hotswap_adapter" in step.change and step.recompiles_saved == 2


def test_a_change_that_does_not_make_a_number_dynamic_is_preferred_where_that_saves_nothing():
    first, second = CodeChange(settings={"dynamic_sources": "L['n']"}), CodeChange(text="Pass a tensor.")
    assert is_dynamic_change(first) and not is_dynamic_change(second)
    assert order_changes((first, second), is_useless=True) == (second, first)
    assert order_changes((first, second), is_useless=False) == (first, second)


def test_lines_for_one_place_are_one_edit():
    first = Edit("m.py", 3, "insert_before", "f(x)", "mark(x, 0)")
    other = replace(first, new="mark(x, 0)\nmark(x, 1)")
    assert merge_edits([first, other, replace(first, line=9)]) == (other, replace(first, line=9))


def test_what_is_not_proven_may_save_and_no_patch_has_what_a_person_changes(plan_of):
    clip = changes("clip", "value", "1.0", "1.5", user_code="x = x / max(clip, 0.1)")
    (size,) = sizes("4", "6")
    plan = plan_of(*clip, replace(size, compile_id="0/2", closest_compile_id="0/1", compile_key="2"))
    found = {step.expression: (step.is_certain, step.is_by_hand) for step in plan.steps}
    assert found == {"clip": (False, True), "x.shape[0]": (True, False)}
    assert [step.expression for number, step in enumerate(plan.steps, 1) if number in plan.by_hand] == ["clip"]
    assert not plan.is_certain
    assert " may remove 2 of 2 recompiles" in plan.headline


def test_a_compile_that_failed_is_a_note(plan_of):
    plan = plan_of(compiled(outcome="failed", on_failure="raised", fail_type="AssertionError", fail_reason="no"))
    (note,) = plan.notes
    assert "AssertionError: no" in note
