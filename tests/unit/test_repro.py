"""The script of a recompile has nothing of a session but names, constants and numbers."""

import ast

import pytest

from compilediag.errors import CompilediagError
from tests.unit.session_builder import saved
from tests.unit.tables_builder import recompile

BREAKS = (
    *("'", '"', '"""', "\n", "\\", "\u2028", "{0}", "{", "'); __import__('os').abort() #", '"""\nimport os\n"""'),
    *("__import__('os')", "x; import os", "lambda: 0", "f'{1}'", "torch.load('x')", "\udc80", "\u202e", "9" * 5000),
)
GOOD = {
    "tensor_size": ("x.size()[0]", "4", "6"),
    "tensor_dtype": ("x.dtype", "torch.float32", "torch.int64"),
    "requires_grad": ("x.requires_grad", "True", "False"),
    "length": ("len(x)", "1", "2"),
    "type": ("x", "Tensor", "float"),
    "value": ("x", "'a'", "'b'"),
}
CALLED = {"torch.ones", "torch.compile", "torch._logging.set_logs", "read", "len", "Value", "self.__dict__.update"}


def check(text):
    """The script is an import, a constant, a class, a function and three calls, of known functions."""
    tree = ast.parse(text)
    assert [type(node).__name__ for node in tree.body] == [
        *("Expr", "Import", "Assign", "ClassDef", "FunctionDef", "Expr", "Expr", "Expr"),
    ]
    assert {ast.unparse(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)} <= CALLED
    assert all(line.isprintable() for line in text.split("\n"))


@pytest.mark.parametrize("kind", GOOD)
def test_nothing_of_a_session_breaks_out(kind, tmp_path):
    source, expected, actual = GOOD[kind]
    sources = [source.replace("x", name) for name in ("torch", "len", "class", "__class__", "self.__class__", "os.x")]
    keys = [source.replace("x", f"x[{text!r}]") for text in BREAKS]
    texts = [source.replace("x", text) for text in BREAKS] + [source + text for text in BREAKS]
    rows = [recompile(one, kind, expected, actual) for one in (source, *sources, *keys, *texts)]
    for text in (*BREAKS, *map(repr, BREAKS)):
        rows += [recompile(source, kind, text, actual), recompile(source, kind, expected, text)]
    session, written = saved(tmp_path, *rows), 0
    for event_id in session.recompiles["event_id"]:
        try:
            check(session.repro(int(event_id)))
            written += 1
        except CompilediagError as error:
            assert "\n" not in str(error)
    assert written > len(BREAKS) / 2


def test_the_costliest_that_can_be_reproduced(tmp_path):
    rows = [recompile("a", "value", "1", "2", 1, lost_s=1.0), recompile("b", "value", "1", "2", 2, lost_s=3.0)]
    session = saved(tmp_path, *rows, recompile("c", "identity", "f", "g", 3, lost_s=9.0))
    assert "def read(b):" in session.repro()
    with pytest.raises(CompilediagError, match="identity"):
        session.repro(int(session.recompiles["event_id"].iloc[-1]))
    with pytest.raises(CompilediagError, match="12345"):
        session.repro(12345)


@pytest.mark.parametrize("kind", GOOD)
def test_values_that_are_the_same_and_long_paths_are_refused(kind, tmp_path):
    source, expected, actual = GOOD[kind]
    deep = source.replace("x", "x" + ".a" * 250)
    session = saved(tmp_path, recompile(source, kind, expected, expected), recompile(deep, kind, expected, actual))
    for event_id in session.recompiles["event_id"]:
        with pytest.raises(CompilediagError):
            session.repro(int(event_id))
