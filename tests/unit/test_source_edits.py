"""Edits of a source file: where they are put, what they refuse, and that line numbers stay those of the original."""

import textwrap
import traceback

import pytest

from compilediag.diagnosis.change import Edit
from compilediag.diagnosis.source_edits import EditError, apply_edits


def edit(source, line, kind, old, new):
    return apply_edits(textwrap.dedent(source), [Edit("train.py", line, kind, old, new)])


def insert(source, line, old, new="mark(x, 0)"):
    return edit(source, line, "insert_before", old, new).text


def replace(source, line, old, new):
    return edit(source, line, "replace", old, new).text


@pytest.mark.parametrize(
    ("source", "line", "old", "expected"),
    [
        ("y = f(x)\n", 1, "y = f(x)", "mark(x, 0)\ny = f(x)\n"),
        ("for x in xs:\n    y = f(x)\n", 2, "y = f(x)", "for x in xs:\n    mark(x, 0)\n    y = f(x)\n"),
        ("for x in xs:\n\ty = f(x)\n", 2, "y = f(x)", "for x in xs:\n\tmark(x, 0)\n\ty = f(x)\n"),
        ("y = f(\n    x,\n)\n", 2, "x,", "mark(x, 0)\ny = f(\n    x,\n)\n"),
        ("if f(x):\n    pass\n", 1, "if f(x):", "mark(x, 0)\nif f(x):\n    pass\n"),
        ("if a: f(x)\n", 1, "f(x)", "if a: mark(x, 0); f(x)\n"),
        ("x = g(); y = f(x)\n", 1, "y = f(x)", "x = g(); mark(x, 0); y = f(x)\n"),
        ("@wrap\ndef f(): pass\n", 2, "def f(): pass", "mark(x, 0)\n@wrap\ndef f(): pass\n"),
        ("try:\n    f(x)\nexcept E:\n    f(y)", 4, "f(y)", "try:\n    f(x)\nexcept E:\n    mark(x, 0)\n    f(y)"),
        ("# é\nü = f('é', x)\n", 2, "ü = f('é', x)", "# é\nmark(x, 0)\nü = f('é', x)\n"),
        ("a = 1\r\nf(x)\r\n", 2, "f(x)", "a = 1\r\nmark(x, 0)\nf(x)\r\n"),
    ],
)
def test_a_line_is_put_before_the_statement_with_its_indentation(source, line, old, expected):
    assert insert(source, line, old) == expected


def test_several_lines_are_put_before_a_statement():
    assert insert("if a:\n  f(x)", 2, "f(x)", "a(x)\nif b:\n    c(x)") == ("if a:\n  a(x)\n  if b:\n      c(x)\n  f(x)")


TWO_LINES = "step(a=p(ids),\n     b=p(ids))\n"


@pytest.mark.parametrize(
    ("source", "line", "old", "new", "expected"),
    [
        ("y = f(x)\n", 1, "x", "x.t()", "y = f(x.t())\n"),
        ("x = max(x, 1)\n", 1, "x", "x.t()", "x = max(x.t(), 1)\n"),
        ("step(a=ids,\n     b=ids)\n", 1, "step(a=ids, b=ids)", "step(a=p(ids), b=p(ids))", TWO_LINES),
        ("self.step += 1\n", 1, "self.step += 1", "self.step.add_(1)", "self.step.add_(1)\n"),
        ("for x in f(xs):\n    f(xs)\n", 1, "f(xs)", "g(xs)", "for x in g(xs):\n    f(xs)\n"),
        ("f = compile(g)\n", 1, "compile(g)", "compile(g, dynamic=True)", "f = compile(g, dynamic=True)\n"),
        ("def f(x, n=3): return x\n", 1, "n=3", "n=4", "def f(x, n=4): return x\n"),
    ],
)
def test_an_expression_is_replaced_where_it_is_read(source, line, old, new, expected):
    assert replace(source, line, old, new) == expected


def test_two_edits_of_one_call_are_joined():
    call = "step(ids, labels)"
    edits = [
        Edit("a.py", 1, "replace", call, "step(pad(ids), labels)"),
        Edit("a.py", 1, "replace", call, "step(ids, labels.clone())"),
        Edit("a.py", 1, "insert_before", call, "mark(ids, 0)"),
        Edit("a.py", 1, "insert_before", call, "mark(ids, 1)"),
        Edit("a.py", 1, "insert_before", call, "mark(ids, 0)"),
    ]
    assert apply_edits(call, edits).text == "mark(ids, 0)\nmark(ids, 1)\nstep(pad(ids), labels.clone())"


def test_two_edits_of_the_same_argument_are_refused():
    edits = [Edit("a.py", 1, "replace", "f(n)", new) for new in ("f(float(n))", "f(torch.tensor(n))")]
    with pytest.raises(EditError, match="two changes replace the same code in line 1"):
        apply_edits("f(n)", edits)


@pytest.mark.parametrize(
    ("source", "line", "kind", "old", "message"),
    [
        ("y = g(x)", 1, "insert_before", "y = f(x)", r"train.py:1 is `y = g\(x\)`, not `y = f\(x\)`"),
        ("y = g(x)", 7, "insert_before", "y = f(x)", "train.py:7 has no code"),
        ("y = g(x) # f(z)", 1, "replace", "f(z)", "train.py:1 does not have `f\\(z\\)`"),
        ("x = g(); y = f(x)", 1, "insert_before", "x = g(); y = f(x)", "train.py:1 has several statements"),
        ("if a:\n    b\nelif f(x):\n    c", 3, "insert_before", "elif f(x):", "no line can be put before `elif`"),
        ("y = (", 1, "insert_before", "y = (", "the file is not valid Python"),
    ],
)
def test_an_edit_that_does_not_fit_is_refused_in_one_line(source, line, kind, old, message):
    with pytest.raises(EditError, match=message) as raised:
        edit(source, line, kind, old, "mark(x, 0)")
    assert "\n" not in str(raised.value)


def test_an_edit_that_is_not_python_is_refused():
    with pytest.raises(EditError, match="the changed code is not valid Python"):
        insert("y = f(x)", 1, "y = f(x)", "mark dynamic!")


def test_line_numbers_stay_those_of_the_original():
    source = (
        "def f(x):\n    y = [\n        x,\n    ]\n    return g(y,\n      x)\n\ndef g(a, b):\n    raise ValueError\n"
    )
    edits = [
        Edit("a.py", 2, "insert_before", "y = [", "first = 1\nsecond = 2"),
        Edit("a.py", 5, "replace", "g(y, x)", "g(list(y), x)"),
        Edit("a.py", 9, "insert_before", "raise ValueError", "third = 3"),
    ]
    edited = apply_edits(source, edits)
    assert edited.lines == (1, 2, 2, 2, 3, 4, 5, 6, 7, 8, 9, 9, 10)
    namespace = {}
    exec(edited.compile("a.py"), namespace)
    with pytest.raises(ValueError) as raised:
        namespace["f"](1)
    lines = [frame.lineno for frame in traceback.extract_tb(raised.value.__traceback__) if frame.filename == "a.py"]
    assert lines == [5, 9]
    assert namespace["g"].__code__.co_firstlineno == 8


def test_what_is_not_edited_compiles_to_the_same_code():
    source = "x = 1\n\n\ndef f():\n    return (x,\n        f)\n"
    code, expected = apply_edits(source, []).compile("a.py"), compile(source, "a.py", "exec")
    assert code.co_code == expected.co_code
    assert list(code.co_positions()) == list(expected.co_positions())
