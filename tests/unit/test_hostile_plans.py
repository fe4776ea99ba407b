"""Plans of sessions from strangers: no text of a session becomes code, and no other file of the owner is read."""

import ast
import itertools
import json
import os
import re
import textwrap
from dataclasses import fields, replace

import pytest

from compilediag import load
from compilediag.events import Compile, GraphBreak, GuardFailure, Recompile, StackFrame, SymbolicShape
from tests.inside import main, read_page
from tests.tiers import quick

from .session_builder import page_of, saved

#: What the author of a session wants to run.
EVIL = "__import__('pathlib').Path('canary').touch()"
KEYS = [
    EVIL, '#\'\r"ids"]\r-[EVIL]["\'""'.replace("EVIL", EVIL), f"k'] == {EVIL} or ['", f'k"]; {EVIL}; ["',
    f"0) + {EVIL} + (0", f"x\n{EVIL}\n", f"x\r{EVIL}\r", f"x\f{EVIL}", f"x\u2028{EVIL}\u0085{EVIL}", f"x # {EVIL}",
    f"x \\\n{EVIL}", f"(y := {EVIL})", f"lambda: {EVIL}", f"(lambda: {EVIL})()", f"f'{{{EVIL}}}'",
    f"[{EVIL} for _ in '1']", f"*{EVIL}", f"**{EVIL}", f"await {EVIL}", f"(yield {EVIL})", f"x if {EVIL} else y",
    f"x[x[x[{EVIL}]]]", f"{EVIL}.x", f"'{'a' * 9_000}' or {EVIL}", "x" + ".x" * 3_000, "[" * 400 + EVIL + "]" * 400,
    f"\\'] or {EVIL} or ['", f'"""{EVIL}"""', f"'''\n{EVIL}\n'''", f"x\0{EVIL}", f"{{'a': {EVIL}}}", f"x=1, {EVIL}",
    f"x: {EVIL} = 1", f"@{EVIL}", "x  # coding: utf-7\n", "\u202e" + EVIL, "eval", "__builtins__['exec']", "½",
    "')))+$", "getattr(L['x'], '(a+)+$')", "é²", "", " ",
]  # fmt: skip

TRAIN = """\
import torch

@torch.compile
def step(x, k):
    return x * k

def train(batch, k):
    for k in (1.5, 2.5):
        y = step(batch["ids"], k)
    return y
"""
CALLED = {"line": 9, "code": 'y = step(batch["ids"], k)', "call": 'step(batch["ids"], k)'}
#: Guards whose advice is an edit, a setting, a specification: source, kind, values, torch's text.
GUARDS = {
    "size": ("x.size()[0]", "tensor_size", ("4", "6", "9"), "tensor 'x' size mismatch at index 0"),
    "zero_one": ("x.size()[0]", "tensor_size", ("4", "1"), "tensor 'x' size mismatch at index 0"),
    "stride": ("x.stride()[0]", "tensor_stride", ("4", "8"), "tensor 'x' stride mismatch at index 0"),
    "gradient": ("x.requires_grad", "requires_grad", ("True", "False"), "tensor 'x' requires_grad mismatch"),
    "float": ("k", "value", ("1.5", "2.5"), "k == 1.5"),
    "number": ("k", "type", ("int", "Tensor"), "___check_type_id(k, 1)"),
    "counter": ("k", "value", ("1", "2", "3", "4"), "L['k'] == 1"),
    "relation": ("x.size()[0], k", "symbolic_shape", ("4", "6"), "L['x'].size()[0] == L['k']"),
}
TORCH = "/usr/lib/python3.11/site-packages/torch/_dynamo/eval_frame.py"
SHAPE = "check_tensor(L['x'], Tensor, DispatchKeySet(CPU), torch.float32, device=None, size=[4, 3], stride=[3, 1])"


def make_rows(file, guard="size", spec=False):
    """A program whose function recompiles, called at a line of `file`; `spec`: a specification can express it."""
    source, kind, values, reason = GUARDS[guard]
    function = {"function": "step", "file": file, "line": 3}
    first_line = "def step(x, k):" if spec else "@torch.compile"
    compiled = {"stack": "s", "outcome": "ok", "trigger": "dynamo", "graph_ops": 3, "duration_s": 1.0, **function}
    user = {"user_file": file, "user_line": 5, "user_code": "return x * k"}
    rows = [
        StackFrame(time_ns=1, stack="m", file=file, function="train", parameters=["batch", "k"], **CALLED),
        StackFrame(time_ns=1, stack="w", caller="m", file=TORCH, line=1, function="compile_wrapper"),
        StackFrame(time_ns=1, stack="s", caller="w", **function, code=first_line, parameters=["x", "k"]),
        Compile(time_ns=1, compile_id="0/0", compile_key="0", **compiled),
        GraphBreak(time_ns=1, compile_key="0", break_id="GB0059", **user),
    ]
    for number, (old, new) in enumerate(itertools.pairwise(values), 1):
        key = {"time_ns": number + 1, "compile_id": f"0/{number}", "compile_key": str(number)}
        seen = {"guard_source": source, "guard_kind": kind, "expected": old, "actual": new}
        closest = {"closest_compile_key": str(number - 1), "reason": reason, "lost_s": 1.0}
        rows += [
            Compile(**key, is_recompile=True, **compiled),
            Recompile(**key, **function, **seen, **user, **closest),
            GuardFailure(**key, entry_compile_key=str(number - 1), is_first=True, guard=SHAPE, **seen),
            SymbolicShape(**key, action="created", symbol="s0", source="L['x'].size()[0]", value=new),
        ]
    return rows


@pytest.fixture
def plan_of(session_of):
    """`plan_of(rows)`: the plan of a session of torch 2.15, which has specifications of shapes."""
    return lambda rows: session_of(*rows, torch_version="2.15.0").plan()


ALL_GUARDS = [(guard, spec) for guard in GUARDS for spec in (False, True)]

# What code there may be

CALLS = {
    "torch._dynamo.mark_dynamic",
    "torch._dynamo.maybe_mark_dynamic",
    "torch._dynamo.decorators.mark_unbacked",
    "torch.tensor",
    "torch.as_tensor",
    "torch.compile",
    "module.compile",
    "dynamic_spec",
    *("DictSpec", "IntVar", "ObjectSpec", "SeqSpec", "ShapeVar", "TensorSpec"),
}
METHODS = {"contiguous", "view_as", "detach", "requires_grad_"}
STATEMENTS = (ast.Module, ast.Expr, ast.Assign, ast.ImportFrom, ast.Import, ast.alias, ast.FunctionDef, ast.arguments)
EXPRESSIONS = (ast.Name, ast.Attribute, ast.Subscript, ast.Constant, ast.Tuple, ast.List, ast.Dict, ast.Call, ast.IfExp)
REST = (ast.keyword, ast.expr_context, ast.UnaryOp, ast.USub, ast.Pass)


def list_foreign(code):
    """What is in a block of code that compilediag does not write; written apart from what the package checks."""
    if code.rstrip().endswith(")") and "\n@" in f"\n{code}":
        code += "\ndef f(): pass"
    tree = ast.parse(code)
    found = [node for node in ast.walk(tree) if not isinstance(node, (*STATEMENTS, *EXPRESSIONS, *REST))]
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func) not in CALLS:
            is_method = isinstance(node.func, ast.Attribute) and node.func.attr in METHODS
            found += [] if is_method else [node.func]
        if isinstance(node, ast.ImportFrom):
            found += [] if node.module == "torch.fx.experimental.dynamic_spec" else [node]
        if isinstance(node, ast.Import):
            found += [] if ast.unparse(node) == "import torch" else [node]
        if isinstance(node, ast.Assign) and not isinstance(node.targets[0], ast.Name):
            found += [] if ".config." in ast.unparse(node) or "._config." in ast.unparse(node) else [node]
    # A line break that only Python sees, or only a terminal, would make a comment code or code a comment.
    lines = code.split("\n")
    return [ast.unparse(node) for node in found] + [line for line in lines if not line.replace("\t", " ").isprintable()]


def list_blocks(plan):
    """Every text of a plan that is shown as code."""
    changes = [change for step in plan.steps for change in step.alternatives if change.can_be_applied]
    return [
        plan.code(),
        *(step.change for step in plan.steps if step.can_be_applied),
        *(change.code for change in changes),
        *(spec.change.code for spec in plan.specs),
        plan.to_dict()["settings_code"],
    ]


def check_plan(plan):
    for block in list_blocks(plan):
        assert not list_foreign(block), block
    # torch reads these texts as patterns.
    assert not [text for text in plan.settings.values() if not re.fullmatch(r"[\w.\[\]',]*", str(text))]


def list_texts(row):
    """The columns of a row with a text, or a list of texts, that somebody could have written."""
    skipped = ("compile_key", "closest_compile_key", "entry_compile_key", "stack", "caller", "guard_kind", "action")
    values = ((field.name, getattr(row, field.name)) for field in fields(row) if field.name not in skipped)
    return [name for name, value in values if isinstance(value, (str, list))]


def spoil(row, name, key):
    """The row with a hostile text in one column: alone, as an item, in torch's way, and as an argument."""
    value = getattr(row, name)
    if isinstance(value, list):
        return [replace(row, **{name: [*value[:-1], key]})]
    texts = [
        key,
        f"batch[{key}]",
        f"batch['{key}'].size()[0]",
        f"L[{key!r}].size()[0]",
        f"step({key}, k)",
        f"batch[{key}",
        f"getattr(L['x'], {key!r}).size()[0]",
        f"{value} {key}",
    ]
    texts += [value.replace("x", f"x[{key}]", 1), value.replace("ids", key)]
    return [replace(row, **{name: text}) for text in dict.fromkeys(texts)]


def spoil_all(rows, name, key, way):
    """The rows with a hostile text in this column of all of them, so that the rows still agree."""
    spoilt = [spoil(row, name, key) if name in list_texts(row) else [row] for row in rows]
    return [ways[way % len(ways)] for ways in spoilt]


COLUMNS = ("function", "file", "code", "call", "parameters", "guard_source", "reason", "guard", "source", "symbol",
           "user_code", "user_file", "expected", "actual", "value")  # fmt: skip


@pytest.mark.parametrize(("guard", "spec"), ALL_GUARDS)
def test_honest_sessions_have_code(guard, spec, tmp_path, monkeypatch, plan_of):
    """Otherwise the attacks below would attack nothing."""
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "train.py"
    file.write_text(TRAIN)
    plan = plan_of(make_rows(str(file), guard, spec))
    check_plan(plan)
    has_edit = any(step.edits for step in plan.steps)
    assert has_edit is (guard in ("size", "zero_one", "stride", "gradient", "float", "number")), str(plan)
    assert has_edit <= bool(plan.patch())
    assert bool(plan.specs) or guard != "size"


@pytest.mark.parametrize(
    "column", quick(COLUMNS, ["function", "code", "guard_source", "expected"], why="every attack in one column")
)
def test_no_text_of_a_session_becomes_code(column, tmp_path, monkeypatch, plan_of):
    """The files of the program are there, so that patches are made too."""
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "train.py"
    file.write_text(TRAIN)
    for number, key in enumerate(KEYS):
        guard, spec = ALL_GUARDS[(3 * number + COLUMNS.index(column)) % len(ALL_GUARDS)]
        plan = plan_of(spoil_all(make_rows(str(file), guard, spec), column, key, number))
        check_plan(plan)
        check_patch(plan.patch())
    assert os.listdir(tmp_path) == ["train.py"]


def check_patch(patch):
    added = [line[1:] for line in (patch or "").split("\n") if line.startswith("+") and not line.startswith("+++")]
    assert not [line for line in added if "pathlib" in line or "coding" in line or not line.isprintable()]


#: To the eye it is an item of a dict; the carriage return ends the comment, so its list is evaluated.
REPRO = f'batch[#\'\r"ids"]\r-[{EVIL}]["\'\\""]'


@pytest.mark.parametrize("guard", GUARDS)
def test_a_comment_that_ends_with_a_carriage_return(guard, tmp_path, monkeypatch, capsys, plan_of):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text(TRAIN)
    rows = make_rows(str(tmp_path / "train.py"), guard)
    library = "/usr/lib/python3.11/site-packages/library.py"
    for call in (f"step({REPRO}, k)", f"step(\n{REPRO}, k)", CALLED["call"]):
        changed = [replace(row, call=call) if isinstance(row, StackFrame) and row.call else row for row in rows]
        for at, row in enumerate(changed):
            if isinstance(row, Recompile):
                source = row.guard_source.replace("x", REPRO).replace("k", REPRO)
                changed[at] = replace(row, file=library, guard_source=source)
        plan = plan_of(changed)
        check_plan(plan)
        check_patch(plan.patch())
    path = saved(tmp_path, *changed).path
    main(["plan", str(path), "--code"])
    assert not list_foreign(capsys.readouterr().out)
    main(["plan", str(path), "--patch"])
    check_patch(capsys.readouterr().out)
    markdown = load(path).export(tmp_path / "x.md", "markdown", redact=False).read_text()
    for block in re.findall(r"```+python\n(.*?)```", markdown, re.S):
        assert not list_foreign(textwrap.dedent(block))
    assert EVIL not in load(path).warmup(tmp_path / "warm.py").read_text()
    assert not (tmp_path / "canary").exists()


# Files

SECRET = "hunter2-of-the-owner"
LINE = 'y = step(batch["ids"], k)'
SETTINGS = f"# A settings file.\nKEY = '{SECRET}'\ndef f(batch, k):\n    {LINE}\n    return A\nNAME = '{SECRET}'\n"
#: Only a form feed and a line separator are around the line: Python has one line there.
ONE_LINE = SETTINGS.replace("KEY", f"TEXT = '\f{LINE}\u2028'; KEY", 1)


def list_attacks(folder):
    """(file that a session names, its line, the recorded text of that line): none of them may be shown."""
    project, outside = folder / "project", folder / "outside"
    package = project / "lib" / "python3.11" / "site-packages" / "package"
    for private in (project / "private", package, outside):
        private.mkdir(parents=True)
        (private / "settings.py").write_text(SETTINGS)
    (project / "link.py").symlink_to(outside / "settings.py")
    (project / "folder").symlink_to(outside)
    (project / "settings.env").write_text(SETTINGS)
    (project / "large.py").write_text(SETTINGS + "#" * 1_000_001)
    (project / "binary.py").write_bytes(SETTINGS.encode() + b"\xff\xfe")
    (project / "odd.py").write_bytes(b"# coding: hex\n" + SETTINGS.encode())
    (project / "page.py").write_text(ONE_LINE)
    (project / "folder.py").mkdir()
    os.mkfifo(project / "pipe.py")
    (project / "zero.py").symlink_to("/dev/zero")
    inside = str(project / "private" / "settings.py")
    kinds = ("link.py", "folder/settings.py", "settings.env", "large.py", "binary.py", "odd.py", "folder.py", "pipe.py")
    return [
        *((inside, 4, text) for text in ("A", "step", "y", LINE[1:], LINE[:-1], "")),
        *((inside, 5, text) for text in ("A", LINE)),
        *((inside, line, LINE) for line in (0, 2, -3, 10**9)),
        (str(project / "page.py"), 2, LINE),
        (f"{project}/../outside/settings.py", 4, LINE),
        (f"{project}/private/../private/settings.py", 4, LINE),
        ("private/settings.py", 4, LINE),
        ("../outside/settings.py", 4, LINE),
        (str(outside / "settings.py"), 4, LINE),
        (str(package / "settings.py"), 4, LINE),
        *((str(project / name), 4, LINE) for name in (*kinds, "zero.py")),
        *((file, 4, LINE) for file in ("/dev/zero", "/dev/stdin", "/etc/passwd", "/proc/self/environ")),
        (f"{inside}\0.py", 4, LINE),
        (f"{project}/{'a' * 5000}.py", 4, LINE),
    ]


def name_file(rows, file, line, code):
    """The rows with this place for everything that is the user's."""
    places = {"user_file": file, "user_line": line, "user_code": code, "file": file, "line": line}
    for row in rows:
        names = {field.name for field in fields(row)}
        if isinstance(row, StackFrame) and row.file != TORCH:
            yield replace(row, file=file, line=line, code=code)
        elif isinstance(row, (StackFrame, SymbolicShape)):
            yield row
        else:
            yield replace(row, **{name: value for name, value in places.items() if name in names})


def test_no_other_file_of_the_owner_is_shown(tmp_path, monkeypatch):
    attacks = list_attacks(tmp_path)
    monkeypatch.chdir(tmp_path / "project")
    for number, (file, line, code) in enumerate(attacks):
        folder = tmp_path / str(number)
        folder.mkdir()
        rows = make_rows(file, ("size", "float", "counter")[number % 3])
        session = load(saved(folder, *name_file(rows, file, line, code)).path)
        assert session.plan().patch() is None, (file, line, code)
        assert SECRET not in json.dumps(page_of(session)), (file, line, code)
    assert SECRET not in read_page(session.report(folder / "report.html"))


def test_the_whole_line_of_a_file_of_the_program_is_enough(tmp_path, monkeypatch):
    """Otherwise the attacks above would attack nothing."""
    list_attacks(tmp_path)
    monkeypatch.chdir(tmp_path / "project")
    file = str(tmp_path / "project" / "private" / "settings.py")
    session = load(saved(tmp_path, *name_file(make_rows(file), file, 4, LINE)).path)
    assert SECRET in session.plan().patch() and SECRET in json.dumps(page_of(session))
    monkeypatch.chdir(tmp_path / "project" / "lib")
    assert session.plan().patch() is None and SECRET not in json.dumps(page_of(session))


def test_a_trial_opens_no_other_file(tmp_path, monkeypatch, capsys):
    """The line is the right one, but the file is none of the program; nothing is run."""
    attacks = [attack for attack in list_attacks(tmp_path) if attack[2] == LINE]
    monkeypatch.chdir(tmp_path / "project")
    (tmp_path / "project" / "train.py").write_text("open('canary', 'w')")
    tried = 0
    for number, (file, line, code) in enumerate(attacks):
        folder = tmp_path / str(number)
        folder.mkdir()
        path = saved(folder, *name_file(make_rows(file), file, line, code)).path
        if not any(step.edits for step in load(path).plan().steps):
            continue  # The plan is a setting.
        tried += 1
        assert main(["try", "--plan", str(path), "--yes", "train.py"]) == 2, file
        shown = capsys.readouterr()
        assert shown.out == "" and shown.err.count("\n") == 1 and SECRET not in shown.err and "root:" not in shown.err
    assert tried > 10 and not os.path.exists("canary")


def test_a_plan_of_a_file_is_confirmed(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text("open('canary', 'w')")
    path = saved(tmp_path, *make_rows(str(tmp_path / "train.py"))).path
    assert main(["try", "--plan", str(path), "train.py"]) == 2
    shown = capsys.readouterr()
    assert shown.out == "" and shown.err.count("\n") == 1 and "--yes" in shown.err and not os.path.exists("canary")
