"""Edits of the user's call: what is put before it, what is replaced in it, and where neither is possible."""

import pytest

from compilediag.diagnosis.change import CallSite
from tests.inside import has_argument, insert_before, replace_argument

TENSOR = "torch.tensor({0})"


def line(code, call=None, number=7):
    return CallSite("train.py", number, code=code, call=call)


def insert(code, mark="torch._dynamo.mark_dynamic(ids, 0)", call="step(ids)"):
    edits = insert_before(line(code, call), (mark,))
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
    assert replace_argument({}, TENSOR) == ()
    assert replace_argument({line("f(x, k)"): "k"}, TENSOR) == ()


def test_an_argument_is_replaced_at_each_line_that_calls_the_function_or_at_none():
    warm_up, step = line("f(x, start)", "f(x, start)", 2), line("y = f(x, k)", "f(x, k)")
    edits = replace_argument({warm_up: "start", step: "k"}, TENSOR)
    assert [(edit.line, edit.new) for edit in edits] == [(2, "torch.tensor(start)"), (7, "torch.tensor(k)")]
    assert replace_argument({warm_up: None, step: "k"}, TENSOR) == ()


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
