"""A redacted view of a real run: secrets that were planted wherever a program can hold one are not in it."""

import json
import traceback

import pytest
import torch

import compilediag as cd
from compilediag.views.model import ViewModel
from compilediag.views.page_json import dumps
from tests.scripts import load_script

PROGRAM = """
import torch

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.mode = "SECRET_attribute_1"
        self.table = {"SECRET_key": 1}

    def forward(self, x, text):
        SECRET_variable = x + len(self.mode)
        if text == "SECRET_argument_1":
            SECRET_variable = SECRET_variable * 2
        return SECRET_variable + self.table["SECRET_key"]

def breaking(x):
    print("SECRET_printed")
    return x + 1

def backend(graph, inputs):
    raise ValueError("SECRET_message")

def run():
    model = Model()
    function = torch.compile(model, backend="eager")
    function(torch.ones(2), "SECRET_argument_1")
    function(torch.ones(2), "SECRET_argument_2")
    model.mode = "SECRET_attribute_2"
    function(torch.ones(2), "SECRET_argument_2")
    model.table["SECRET_key"] = 2
    model.table["SECRET_other_key"] = 3
    function(torch.ones(3), "SECRET_argument_2")
    torch.compile(breaking, backend="eager")(torch.ones(2))
    try:
        torch.compile(lambda x: x - 1, backend=backend)(torch.ones(2))
    except torch._dynamo.exc.BackendCompilerFailed:
        pass
"""


@pytest.fixture(scope="module")
def session(tmp_path_factory):
    folder = tmp_path_factory.mktemp("SECRET_folder")
    path = folder / "SECRET_file.py"
    path.write_text(PROGRAM)
    module = load_script(path)
    torch._dynamo.reset()
    with cd.watch(folder / "SECRET_run.cdiag") as session:
        module.run()
    return session


def planted(text):
    return {word.split("SECRET_")[1] for word in text.replace("'", '"').split('"') if "SECRET_" in word}


def test_unredacted_every_secret_is_in_the_session(session):
    """Else the tests below would show nothing."""
    page = dumps(ViewModel(session.data).snapshot())
    texts = " ".join(session.artifact(int(i)) for i in session.artifacts["event_id"])
    for secret in ("attribute_1", "argument_1", "file", "folder", "message", "printed"):
        assert f"SECRET_{secret}" in page, secret
    assert "SECRET_key" in page + texts


def test_a_redacted_snapshot_holds_none(session):
    snapshot = ViewModel(session.data, redact=True).snapshot()
    assert "SECRET_" not in dumps(snapshot), planted(json.dumps(snapshot))
    at = [column["name"] for column in snapshot["columns"]["compiles"]].index("function")
    names = {row[at] for row in snapshot["rows"]["compiles"]}
    assert {"forward", "breaking"} <= names, "names of functions stay"
    assert snapshot["totals"] == ViewModel(session.data).snapshot()["totals"], "so do all numbers"
    assert len(snapshot["findings"]) > 0 and "texts" not in snapshot


def test_a_redacted_report_holds_none(session, tmp_path):
    whole = session.report(tmp_path / "report.html").read_text()
    redacted = session.report(tmp_path / "redacted.html", redact=True).read_text()
    assert "SECRET_" in whole
    assert "SECRET_" not in redacted
    assert str(tmp_path.parent) not in redacted and traceback.__file__ not in redacted


def test_redacted_markdown_holds_none(session, tmp_path):
    whole = session.export(tmp_path / "whole.md", "markdown", redact=False).read_text()
    redacted = session.export(tmp_path / "redacted.md", "markdown").read_text()
    assert "SECRET_" in whole
    assert "SECRET_" not in redacted
    assert str(tmp_path.parent) not in redacted and "test_redacted" not in redacted
    assert torch.__version__ in redacted and session.meta["device"] in redacted
    assert whole.splitlines()[0] == redacted.splitlines()[0]
    assert ("Where compile time goes:" in whole) == bool(session.plan().costs)
