"""What the user wrote that keeps sizes static, found in the files of a session; nothing of them is executed."""

import json
import os

import pytest

from compilediag.events import Compile, GuardFailure, Recompile, StackFrame

from .session_builder import page_of

TORCH = "/usr/lib/python3.11/site-packages/torch/_dynamo/eval_frame.py"
CALL = "y = step(batch)"
FUNCTION = "def step(x):\n    return x * 2\n"
DECORATED = f"@torch.compile(dynamic=False)\n{FUNCTION}"
SECRET = "SECRET = 'hunter2'"


def make_rows(file, source, call=CALL):
    """A session of `source` in which a size of the argument of `step` changes three times."""
    lines = source.splitlines()
    at = next(number for number, line in enumerate(lines, 1) if "def step" in line)
    first = at - lines[at - 2].startswith("@")
    place = {"function": "step", "file": file, "line": first}
    calls = next(number for number, line in enumerate(lines, 1) if call in line)
    shown = {"line": calls, "code": call, "call": call.removeprefix("y = ")}
    rows = [
        StackFrame(time_ns=1, stack="m", file=file, function="<module>", **shown),
        StackFrame(time_ns=1, stack="w", caller="m", file=TORCH, line=1, function="compile_wrapper"),
        StackFrame(time_ns=1, stack="s", caller="w", **place, code=lines[first - 1], parameters=["x"]),
    ]
    common = {"stack": "s", "outcome": "ok", "duration_s": 1.0}
    for number, size in enumerate(("4", "6", "9", "11")):
        key = {"time_ns": number + 1, "compile_id": f"0/{number}", "compile_key": str(number)}
        rows.append(Compile(**key, **place, **common, is_recompile=number > 0))
        if number:
            guard = {"guard_source": "x.size()[0]", "guard_kind": "tensor_size", "expected": "4", "actual": size}
            reason = "tensor 'x' size mismatch at index 0. expected 4"
            entry = str(number - 1)
            rows.append(Recompile(**key, **place, **guard, closest_compile_key=entry, reason=reason, lost_s=1.0))
            rows.append(GuardFailure(**key, **guard, entry_compile_key=entry, is_first=True, guard=reason))
    return rows


@pytest.fixture
def plan_of(tmp_path, monkeypatch, session_of):
    """`plan_of(source)`: the plan of a session of train.py, which is in the current folder."""
    monkeypatch.chdir(tmp_path)

    def make(source, recorded=None, call=CALL):
        text = f"import torch\n{source}"
        (tmp_path / "train.py").write_text(text)
        rows = make_rows(str(tmp_path / "train.py"), f"import torch\n{recorded}" if recorded else text, call)
        return session_of(*rows).plan()

    return make


def get_edits(plan):
    [step] = plan.steps
    return [(edit.line, edit.old, edit.new) for edit in step.edits if edit.kind == "replace"]


WITHOUT = [
    (DECORATED, (2, "@torch.compile(dynamic=False)", "@torch.compile")),
    (f"{FUNCTION}step = torch.compile(step, dynamic=False)\n",
     (4, "torch.compile(step, dynamic=False)", "torch.compile(step)")),
    (f"{FUNCTION}def build(f):\n    return torch.compile(f, dynamic=False)\nstep = build(step)\n",
     (5, "torch.compile(f, dynamic=False)", "torch.compile(f)")),
    (f"torch._dynamo.config.automatic_dynamic_shapes = False\n@torch.compile\n{FUNCTION}",
     (2, "torch._dynamo.config.automatic_dynamic_shapes = False",
      "torch._dynamo.config.automatic_dynamic_shapes = True")),
]  # fmt: skip


@pytest.mark.parametrize(("source", "edit"), WITHOUT)
def test_it_is_found_where_the_function_is_compiled(source, edit, plan_of):
    plan = plan_of(f"{source}{CALL}\n")
    assert get_edits(plan) == [edit]
    assert (plan.recompiles, plan.recompiles_saved) == (3, 2)
    line, old, new = edit
    assert plan.steps[0].place == f"train.py:{line}"
    [changed] = plan.changed_sources()
    assert changed.after == changed.before.replace(old.removeprefix("@"), new.removeprefix("@"))
    assert {one.step for one in changed.lines if one.mark != " "} == {1}
    assert plan.patch().count("\n-") == plan.patch().count("\n+") - 1 == 1
    assert new in plan.code()


@pytest.mark.parametrize(
    "source",
    [
        f"@torch.compile\n{FUNCTION}",
        f"@torch.compile(dynamic=None)\n{FUNCTION}",
        f"@torch.compile\n{FUNCTION}@torch.compile(dynamic=False)\ndef other(x):\n    return x\n",
        f"@torch.compile\n{FUNCTION}other = torch.compile(print, dynamic=False)\n",
        f"{FUNCTION}a = torch.compile(min, dynamic=False)\nb = torch.compile(max, dynamic=False)\n",
        f"{FUNCTION}step = torch.export.export(step, dynamic=False)\n",
        f"{FUNCTION}# torch.compile(step, dynamic=False)\n",
    ],
)
def test_what_compiles_something_else_does_not_count(source, plan_of):
    assert get_edits(plan_of(f"{source}{CALL}\n")) == []


@pytest.mark.parametrize(
    ("source", "code"),
    [
        (f"@torch.compile(dynamic=IS_DYNAMIC)\n{FUNCTION}", "dynamic=IS_DYNAMIC"),
        (f"{FUNCTION}step = torch.compile(step, **options)\n", "**options"),
        (f"torch._dynamo.config.patch(automatic_dynamic_shapes=False)\n@torch.compile\n{FUNCTION}",
         "automatic_dynamic_shapes=False"),
        (f"config = torch._dynamo.config\nconfig.automatic_dynamic_shapes = False\n@torch.compile\n{FUNCTION}",
         "config.automatic_dynamic_shapes = False"),
    ],
)  # fmt: skip
def test_what_only_a_person_can_change_is_said_in_words(source, code, plan_of):
    plan = plan_of(f"{source}{CALL}\n")
    assert get_edits(plan) == []
    assert any(f"`{code}` (train.py:" in change.text for change in plan.steps[0].alternatives)
    assert f"`{code}` (train.py:" in plan.steps[0].why


@pytest.mark.parametrize(
    ("now", "then"),
    [
        (f"{DECORATED}{CALL} + 1\n", f"{DECORATED}{CALL}\n"),
        (f"# one more line\n{DECORATED}{CALL}\n", f"{DECORATED}{CALL}\n"),
        (f"@torch.compile(dynamic=False)\n{SECRET}\n{FUNCTION}", f"@torch.compile\n{FUNCTION}{CALL}\n"),
        (f"{FUNCTION}{SECRET}; step = torch.compile(step, dynamic=False)\n", f"{FUNCTION}\n{CALL}\n"),
    ],
)
def test_a_file_that_is_not_the_recorded_one_is_not_used(now, then, plan_of):
    plan = plan_of(now, then)
    assert get_edits(plan) == []
    assert "hunter2" not in json.dumps(plan.to_dict())


def test_a_file_of_another_folder_is_not_read(tmp_path, monkeypatch, session_of):
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path / "other")
    source = f"import torch\n{FUNCTION}step = torch.compile(step, dynamic=False)\n{CALL}\n"
    (tmp_path / "train.py").write_text(source)
    session = session_of(*make_rows(str(tmp_path / "train.py"), source))
    assert get_edits(session.plan()) == []
    assert "dynamic=False)" not in json.dumps(page_of(session))


EVIL = "__import__('pathlib').Path('canary').touch()"


@pytest.mark.parametrize(
    "evil", [EVIL, f"[{EVIL}]", f"lambda: {EVIL}", "[" * 300 + "]" * 300, "'\\x1b[2J'", "'\u202e'"]
)
def test_nothing_of_the_file_is_executed_and_its_own_code_stays(evil, tmp_path, plan_of):
    source = f"{FUNCTION}step = torch.compile(step, dynamic=False, options={{'a': {evil}}})\n{CALL}\n"
    plan = plan_of(source)
    for old, new in ((old, new) for _, old, new in get_edits(plan)):
        assert plan.changed_sources()[0].after == f"import torch\n{source}".replace(", dynamic=False", "")
        assert len(new) == len(old) - len(", dynamic=False")
    assert plan.code().replace("\n", "").isprintable()
    assert os.listdir(tmp_path) == ["train.py"]
