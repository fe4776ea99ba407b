"""The script that `session.warmup()` writes, and when its variants are complete."""

import ast
from dataclasses import replace

import pytest

from compilediag import load
from compilediag.diagnosis.variants import Variants, list_missing
from compilediag.events import Artifact, CacheLookup, Compile
from tests.unit.session_builder import SECOND, saved

PLACE = {"function": "forward", "file": "/home/ada/model.py", "line": 30}
GRAPH = """class GraphModule(torch.nn.Module):
    def forward(self, L_self_modules_linear_parameters_weight_: "f32[4, 4][4, 1]cpu", L_x_: "f32[2, 4][4, 1]cpu"):
"""


def compiled(key, **more):
    defaults = {"time_ns": SECOND, "compile_id": "0/0", "trigger": "dynamo", "outcome": "ok", "graph_ops": 3}
    return Compile(**{**defaults, **PLACE, "compile_key": key, "duration_s": 2.0, **more})


def backward(key):
    return compiled(key, trigger="lazy_backward", graph_ops=None)


def stored(key, outcome="saved"):
    return CacheLookup(time_ns=SECOND, compile_key=key, cache="aot_autograd", outcome=outcome, **PLACE)


EVENTS = [compiled("a"), stored("a"), backward("a"), compiled("b"), compiled("c", outcome="failed")]


def save_session(folder, *events, program):
    """A session of a program."""
    session = saved(folder, *events)
    session.data.set_meta(program=program)
    return load(session.path)


def run_function(text):
    """The source of the function `run` of a script."""
    tree = ast.parse(text)
    (found,) = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == "run"]
    return ast.unparse(found)


@pytest.mark.parametrize(
    ("events", "is_complete"),
    [
        (EVENTS, True),
        (EVENTS[:3], False),
        ([compiled("a"), backward("a"), compiled("b")], False),
        ([compiled("a"), stored("a", "hit"), compiled("b")], True),  # A hit brings its backward.
    ],
)
def test_a_warmup_is_complete_when_every_variant_is_there(tmp_path, events, is_complete):
    wanted = [Variants("forward", "model.py", 30, count=2, backwards=1, stored=1)]
    assert (list_missing(wanted, saved(tmp_path, *events).data) == []) is is_complete


def test_the_script_runs_the_program_of_its_command_line(tmp_path):
    program = {"script": "/home/ada/train.py", "module": None, "arguments": ["--lr", "0.1"], "folder": "/home/ada"}
    session = save_session(tmp_path, *EVENTS, program=program)
    text = session.warmup(tmp_path / "warm.py").read_text()
    assert "Recorded was: python train.py --lr 0.1" in text and "TODO" not in text
    assert "/home/ada" not in text, "the user names the program that is run"
    assert "runpy.run_path(sys.argv[0], run_name='__main__')" in run_function(text)
    assert "save_artifacts(run, VARIANTS, 'warm.artifacts')" in text
    assert "Variants('forward', 'model.py', 30, count=2, backwards=1, stored=1)," in text


def test_without_a_program_the_calls_are_marked(tmp_path):
    graph = (Artifact(time_ns=SECOND, compile_key="a", name="dynamo_output_graph"), GRAPH)
    session = saved(tmp_path, *EVENTS, graph)
    text = session.warmup(tmp_path / "warm.py").read_text()
    assert "# TODO: call forward (model.py:30), once for each variant:" in text
    assert "#   1. x: f32[2, 4] cpu" in text and "weight" not in text and "call backward()" in text
    assert "raise NotImplementedError" in run_function(text)


@pytest.mark.parametrize("text", ["\nowned()\n", '"""\nowned()\n"""', "\\\nowned()", "\rowned()", "\u2028owned()"])
@pytest.mark.parametrize("is_program", [True, False])
def test_no_text_of_a_session_becomes_code(tmp_path, text, is_program):
    """Somebody else may have recorded the session, and this script is run."""
    program = {"script": f"/a{text}.py", "module": None, "arguments": [text], "folder": text} if is_program else None
    rows = [replace(row, function=f"f{text}", file=f"/m{text}.py") for row in EVENTS if isinstance(row, Compile)]
    session = save_session(tmp_path, *rows, program=program)
    session.data.set_meta(torch_version=f"2.13{text}")
    script = load(session.path).warmup(tmp_path / "warm.py").read_text()
    assert "owned" in script
    assert "owned" not in {node.id for node in ast.walk(ast.parse(script)) if isinstance(node, ast.Name)}


@pytest.mark.parametrize(
    ("program", "command"),
    [
        ({"script": "/home/ada/train.py", "module": None}, "python train.py --lr 0.1"),
        ({"script": None, "module": "ada.train"}, "python -m ada.train --lr 0.1"),
        ({"script": None, "module": None}, None),
        (None, None),
    ],
)
def test_a_program_has_a_command_line(tmp_path, program, command):
    given = program and {**program, "arguments": ["--lr", "0.1"], "folder": "/home/ada"}
    text = save_session(tmp_path, *EVENTS, program=given).warmup(tmp_path / "warm.py").read_text()
    assert (f"Recorded was: {command}" in text) is (command is not None) is ("TODO" not in text)
