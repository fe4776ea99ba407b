"""Data of the program that looks like code is never executed, and never taken for a guard: see hostile_data.py."""

import ast
import builtins
import collections
import contextlib
import json
import re
from pathlib import Path
from typing import Any

import pytest

import compilediag as cd
from tests.live import hostile_data
from tests.program_server import ProgramServer

#: Cases of each shape with one payload, besides those that read several. `--long` runs every template in every shape.
FEW, ALL = 1, len(hostile_data.TEMPLATES)
#: Names of which none is called in a program that compilediag writes.
HARMFUL = {"CANARY", "TRAP", "__import__", "eval", "exec"}


def run_program(program_server: ProgramServer, folder: Path, each: int) -> dict[str, Any]:
    """What the program did without a watch, with TORCH_TRACE, and with a watch in each detail."""
    modes = {"none": {"TORCH_TRACE": str(folder / "trace")}, "lean": {}, "full": {}}
    for mode, env in modes.items():
        done = program_server.run("-m", "tests.live.hostile_data", mode, folder, each, env=env, timeout=900)
        assert done.returncode == 0, done.stderr
    return {mode: json.loads((folder / f"{mode}.json").read_text()) for mode in modes}


@pytest.fixture(scope="module", params=[FEW, pytest.param(ALL, marks=pytest.mark.long("1,400 cases in each mode"))])
def ran(request, program_server, tmp_path_factory):
    folder = tmp_path_factory.mktemp("hostile")
    results = run_program(program_server, folder, request.param)
    cd.ingest([folder / "trace"], folder / "log.cdiag")
    return folder, results, hostile_data.make_cases(request.param)


@pytest.fixture
def watched_builtins(monkeypatch):
    """The payloads reach the canary in this process too; gives what was executed."""
    monkeypatch.setattr(builtins, "CANARY", hostile_data.canary, raising=False)
    hostile_data.EXECUTED.clear()
    return hostile_data.EXECUTED


@pytest.mark.parametrize("detail", ["lean", "full"])
def test_the_program_computes_the_same_and_nothing_is_executed(ran, detail):
    _, results, cases = ran
    plain, watched = results["none"], results[detail]
    assert len(plain["cases"]) == len(cases) > 80 and plain["executed"] == []
    assert {name: case["executed"] for name, case in watched["cases"].items() if case["executed"]} == {}
    assert watched["executed"] == []
    assert watched["cases"] == plain["cases"]
    assert not [name for name, case in plain["cases"].items() if case["graphs"] < 1], "each case compiles"


@pytest.mark.parametrize("name", ["lean", "full", "log"])
def test_every_name_is_that_of_the_same_program_with_a_harmless_key(ran, name):
    folder, _, cases = ran
    wrong = find_wrong_names(folder, cases, name)
    assert {case: names for case, names in wrong.items() if cases[case].shape not in ATTRIBUTES} == {}


#: Shapes with attributes whose names are no identifiers.
ATTRIBUTES = ("attribute", "has_attribute")


def test_an_attribute_of_any_name_is_shown_as_one_expression(ran):
    folder, _, cases = ran
    assert not [case for case in find_wrong_names(folder, cases, "full") if cases[case].shape in ATTRIBUTES]


def find_wrong_names(folder, cases, name):
    """Case -> (names that the harmless case does not have, those that it has)."""
    shown = find_names(cd.load(folder / f"{name}.cdiag"))
    wrong = {}
    for case, (shape, keys) in cases.items():
        plain_keys = cases[f"{shape}-plain"].keys
        plain = {normalize(text, plain_keys) for text in shown[name_in_session(f"{shape}-plain", shape, plain_keys)]}
        texts = shown[name_in_session(case, shape, keys)]
        known = list(map(strip_scope, keys)) if name == "log" else keys
        if LOST in known:
            continue
        other = [text for text in texts if normalize(text, known) not in plain | EXTRA.get(shape, set())]
        if other or (plain and not texts):
            wrong[case] = other, plain
    return wrong


#: Names that a key of another type than the harmless one has: an empty string and an empty tuple fail other guards.
EXTRA = {"compared": {"len(k)"}}
#: Stands for a key that torch's log no longer has.
LOST = object()


def strip_scope(key):
    """A key as torch's logs have it: torch writes `L['x']` as `x` there, inside of strings too."""
    text = re.sub(r"L\[\s*['\"](.*?)['\"]\s*\]", r"\1", f"d[{key!r}]")
    try:
        return read_key(ast.parse(text, mode="eval").body.slice)
    except (SyntaxError, ValueError, AttributeError):
        return LOST


def name_in_session(case, shape, keys):
    return keys[0] if shape == "function_name" else case


def find_names(session):
    """Function -> the name of each guard that failed in it."""
    functions = session.recompiles.set_index("compile_key")["function"].to_dict()
    found = collections.defaultdict(list)
    for row in session.guard_failures.itertuples():
        if row.compile_key in functions and isinstance(row.guard_source, str):
            found[functions[row.compile_key]].append(row.guard_source)
    return found


class _Renamed(ast.NodeTransformer):
    """Every read of a payload becomes one attribute `plain`, however it is spelled."""

    def __init__(self, keys):
        self.keys = keys

    def is_key(self, node):
        with contextlib.suppress(ValueError):
            value = read_key(node)
            return any(type(value) is type(key) and value == key for key in self.keys)
        return False

    def generic_visit(self, node):
        if isinstance(node, ast.expr) and self.is_key(node):
            return ast.Constant("plain")
        node = super().generic_visit(node)
        match node:
            case ast.Call(ast.Name("getattr"), [owner, ast.Constant("plain")]):
                return ast.Attribute(owner, "plain")
            case ast.Subscript(ast.Attribute(owner, "_buffers" | "_modules" | "__dict__"), ast.Constant("plain")):
                return ast.Attribute(owner, "plain")
            case ast.Subscript(owner, ast.Constant("plain")):
                return ast.Attribute(owner, "plain")
        return node


def read_key(node):
    match node:
        case ast.Call(ast.Name("frozenset"), [ast.Set(items)]):
            return frozenset(map(read_key, items))
        case ast.Tuple(items):
            return tuple(map(read_key, items))
    return ast.literal_eval(node)


def normalize(text, keys):
    """A shown name as the tree of an expression in which each key is the harmless one; the text if it is none."""
    try:
        tree = ast.parse(text, mode="eval")
    except (SyntaxError, ValueError):
        return f"no expression: {text}"
    return ast.unparse(_Renamed(keys).visit(tree))


@pytest.mark.parametrize("name", ["lean", "full", "log"])
def test_no_view_of_a_session_executes_anything(ran, watched_builtins, tmp_path, name):
    folder = ran[0]
    session = cd.load(cd.load(folder / f"{name}.cdiag").save(tmp_path / "copy.cdiag"))
    plan = session.plan()
    assert session.summary() and session.findings() and session.explore() is not None
    session.report(tmp_path / "report.html")
    session.export(tmp_path / "x.md", "markdown", redact=False)
    session.export(tmp_path / "redacted.md", "markdown", redact=True)
    session.warmup(tmp_path / "warmup.py")
    assert str(plan) and plan.to_dict() and plan._repr_html_() is not None
    assert watched_builtins == []
    for text in (plan.code(), (tmp_path / "warmup.py").read_text()):
        assert find_harmful(text) == []
    for line in re.findall(r"^\+(?!\+\+)(.*)$", str(plan.patch()), re.M):
        assert "\r" not in line and not any(f"{word}(" in strip_strings(line) for word in HARMFUL), line


def find_harmful(text):
    """The names in a program, outside of strings and comments, that only a payload has."""
    nodes = ast.walk(ast.parse(text))
    return [node.id for node in nodes if isinstance(node, ast.Name) and node.id in HARMFUL]


def strip_strings(line):
    """A line of a program without its strings and its comment."""
    return re.sub(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|#.*", "", line)
