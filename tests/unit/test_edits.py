"""Edits of the user's call: what is put before it, what is replaced in it, and where neither is possible."""

from dataclasses import dataclass, field

import pytest

from compilediag.decode.guards.path import Path
from compilediag.diagnosis.causes.call_sites import NamedSite, UserNames
from compilediag.diagnosis.causes.edits import has_argument, insert_before, replace_argument

TENSOR = "torch.tensor({0})"


@dataclass(frozen=True)
class Line:
    code: str
    call: str | None = None
    file: str = "train.py"
    line: int = 7


@dataclass
class CalledCause:
    call_site: Line | None
    source: str = "k"
    user: UserNames = field(default_factory=lambda: UserNames(paths=(Path("k"),)))


def insert(code, line="torch._dynamo.mark_dynamic(ids, 0)", call="step(ids)"):
    edits = insert_before(Line(code, call), (line,))
    return edits[0] if edits else None


def test_a_line_goes_before_the_statement_of_the_call():
    edit = insert("loss = step(ids)")
    assert (edit.file, edit.line, edit.kind) == ("train.py", 7, "insert_before")
    assert (edit.old, edit.new) == ("loss = step(ids)", "torch._dynamo.mark_dynamic(ids, 0)")


@pytest.mark.parametrize("code", ["if step(ids) > 0:", "for y in step(ids):", "with step(ids) as y:", "loss = step("])
def test_a_header_that_runs_the_call_once_has_room_before_it(code):
    assert insert(code) is not None


@pytest.mark.parametrize(
    "code",
    [
        "while step(ids) > 0:",
        "elif step(ids) > 0:",
        "for ids in data: step(ids)",
        "found = [step(ids) for ids in data]",
        "found = map(lambda ids: step(ids), data)",
        "if (ids := load()) is not None and step(ids):",
    ],
)
def test_no_line_goes_where_it_would_not_run_before_each_call(code):
    assert insert(code) is None


def test_no_edit_without_a_call_site():
    assert replace_argument(CalledCause(None), TENSOR) == ()
    assert replace_argument(CalledCause(Line("f(x, k)", None)), TENSOR) == ()


def test_an_argument_is_replaced_in_the_call_alone():
    (edit,) = replace_argument(CalledCause(Line("k = f(x, k)", "f(x, k)")), TENSOR)
    assert (edit.kind, edit.call, edit.old, edit.new) == ("replace", "f(x, k)", "k", "torch.tensor(k)")


def test_an_argument_is_replaced_at_each_line_that_calls_the_function_or_at_none():
    warm_up, step = Line("f(x, start)", "f(x, start)", line=2), Line("y = f(x, k)", "f(x, k)")
    named = UserNames(paths=(Path("k"),), sites=(NamedSite(warm_up, {"k": "start"}), NamedSite(step, {"k": "k"})))
    edits = replace_argument(CalledCause(step, user=named), TENSOR)
    assert [(edit.line, edit.new) for edit in edits] == [(2, "torch.tensor(start)"), (7, "torch.tensor(k)")]
    unnamed = UserNames(paths=(Path("k"),), sites=(NamedSite(warm_up), NamedSite(step, {"k": "k"})))
    assert replace_argument(CalledCause(step, user=unnamed), TENSOR) == ()


@pytest.mark.parametrize(
    ("call", "value", "is_there"),
    [
        ("f(x, scale=k)", "k", True),
        ("f(\n    x,\n    k,  # the scale\n)", "k", True),
        ("f(x, batch['k'])", 'batch["k"]', True),
        ("f(x, k + 1)", "k", False),
        ("f(x", "x", False),
        ("x", "x", False),
        ("f(x); g(k)", "k", False),
        ("f(k)", "k; g(x)", False),
    ],
)
def test_arguments_are_found_by_what_they_are(call, value, is_there):
    assert has_argument(call, value) is is_there
