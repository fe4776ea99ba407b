"""Edits of the user's call: what is put before it, what is replaced in it, and where neither is possible."""

from dataclasses import dataclass, field

import pytest

from compilediag.diagnosis.causes.edits import insert_before, replace_argument, rewrite_argument
from compilediag.diagnosis.causes.user_names import NamedSite, UserNames


@dataclass(frozen=True)
class Line:
    code: str
    call: str | None = None
    file: str = "train.py"
    line: int = 7


@dataclass
class CalledCause:
    call_site: Line | None
    expression: str | None = None
    source: str = "k"
    user: UserNames = field(default_factory=UserNames)


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
    assert replace_argument(CalledCause(None, "k"), "torch.tensor({})") == ()
    assert replace_argument(CalledCause(Line("f(x, k)", None), "k"), "torch.tensor({})") == ()


def test_an_argument_is_replaced_in_the_call_alone():
    (edit,) = replace_argument(CalledCause(Line("k = f(x, k)", "f(x, k)"), "k"), "torch.tensor({})")
    assert (edit.kind, edit.old, edit.new) == ("replace", "f(x, k)", "f(x, torch.tensor(k))")


def test_an_argument_is_replaced_at_each_line_that_calls_the_function_or_at_none():
    warm_up, step = Line("f(x, start)", "f(x, start)", line=2), Line("y = f(x, k)", "f(x, k)")
    named = UserNames(sites=(NamedSite(warm_up, {"k": "start"}), NamedSite(step, {"k": "k"})))
    edits = replace_argument(CalledCause(step, "k", user=named), "torch.tensor({})")
    assert [(edit.line, edit.new) for edit in edits] == [(2, "f(x, torch.tensor(start))"), (7, "f(x, torch.tensor(k))")]
    unnamed = UserNames(sites=(NamedSite(warm_up), NamedSite(step, {"k": "k"})))
    assert replace_argument(CalledCause(step, "k", user=unnamed), "torch.tensor({})") == ()


@pytest.mark.parametrize(
    ("call", "old", "new"),
    [
        ("f(x, scale=k)", "k", "f(x, scale=K)"),
        ("f(k, k)", "k", "f(K, K)"),
        ("f(\n    x,\n    k,\n)", "k", "f(\n    x,\n    K,\n)"),
        ("f('é', k)", "k", "f('é', K)"),
        ("f(x, batch['k'])", 'batch["k"]', "f(x, K)"),
        ("f(x, k + 1)", "k", None),
        ("f(x", "x", None),
        ("x", "x", None),
    ],
)
def test_arguments_are_found_by_what_they_are(call, old, new):
    assert rewrite_argument(call, old, "K") == new
