"""A redacted view of a real run: secrets that were planted wherever a program can hold one are not in it."""

import dataclasses
import functools
import json
import socket
import sys

import pytest
import torch
from torch._dynamo.utils import CompilationMetrics

import compilediag as cd
from compilediag.events import BY_TABLE
from tests.inside import main, read_page
from tests.live.secret_program import SECRETS, find_leaks, run_program
from tests.tiers import quick
from tests.unit.session_builder import page_of

#: Kind of recording -> secrets that it does not have: they are in the program's source or in its process only.
NOT_RECORDED = {
    "full": {"cause of the exception", "docstring", "kernel's folder"},
    "log": {"cause of the exception", "docstring", "argument", "home"},
    "lean": {"cause of the exception", "docstring", "kernel's folder", "enumeration"},
}
#: The logs of earlier versions do not say which torch wrote them.
LOGS_HAVE_VERSION = "pytorch_version" in {field.name for field in dataclasses.fields(CompilationMetrics)}


@pytest.fixture(scope="module")
def record(tmp_path_factory):
    """Runs the program with a detail, once: (session, folder of its logs, redacted report of `compilediag run`)."""
    return functools.cache(lambda detail: run_program(tmp_path_factory.mktemp("recorded"), detail))


@pytest.fixture(
    scope="module", params=quick(["full", "lean", "log"], ["full", "log"], why="the whole program once more")
)
def recorded(request, record):
    """(kind of recording, session, redacted report of `compilediag run` or None)"""
    session, logs, report = record("lean" if request.param == "lean" else "full")
    if request.param == "log":
        return request.param, cd.ingest(logs, out=report.with_name("log.cdiag")), None
    return request.param, cd.load(session), report


def test_the_session_holds_every_secret(recorded):
    """Else the test below would show nothing."""
    kind, session, _ = recorded
    rows = json.dumps([str(row) for table in BY_TABLE.values() for row in session.data.rows(table)])
    kept = session.artifacts["event_id"][session.artifacts["digest"].notna()]
    stored = [rows, json.dumps(session.meta), *(session.artifact(int(event_id)) for event_id in kept)]
    missing = set(SECRETS) - set(find_leaks(" ".join(stored)))
    assert missing <= NOT_RECORDED[kind]
    assert len(SECRETS) >= 60


def make_views(recorded, folder):
    """Name -> text of each view that can be redacted."""
    _, session, report = recorded
    views = {
        "page": json.dumps(page_of(session, redact=True)),
        "report": read_page(session.report(folder / "report.html", redact=True)),
        "Markdown": session.export(folder / "x.md", "markdown", redact=True).read_text(),
    }
    assert main(["report", session.path, "-o", folder / "cli.html", "--redact"]) == 0
    views["compilediag report"] = read_page(folder / "cli.html")
    assert main(["export", session.path, "--format", "markdown", "-o", folder / "cli.md"]) == 0
    views["compilediag export"] = (folder / "cli.md").read_text()
    if report is not None:
        views["compilediag run --report"] = read_page(report)
    return views


def test_no_redacted_view_holds_any_nor_where_it_ran(recorded, tmp_path):
    places = {"folder": str(tmp_path.parent), "environment": sys.prefix, "torch": torch.__path__[0]}
    if len(socket.gethostname()) > 5:
        places["host"] = socket.gethostname()
    found = {
        name: find_leaks(text) + [what for what, place in places.items() if place in text]
        for name, text in make_views(recorded, tmp_path).items()
    }
    assert {name: leaks for name, leaks in found.items() if leaks} == {}


def test_names_numbers_and_findings_stay(recorded, tmp_path):
    kind, session, _ = recorded
    whole, redacted = (page_of(session, redact=redact) for redact in (False, True))
    at = [column["name"] for column in redacted["columns"]["compiles"]].index("function")
    names = {row[at] for row in redacted["rows"]["compiles"]}
    assert {"forward", "breaking", "read0", "<lambda>"} <= names
    sources = [column["name"] for column in redacted["columns"]["recompiles"]].index("guard_source")
    assert {"table['...']", "table[...]", "self.mode"} <= {row[sources] for row in redacted["rows"]["recompiles"]}
    assert redacted["totals"] == whole["totals"]
    assert len(redacted["findings"]) > 0 and "texts" not in redacted
    texts = [
        session.export(tmp_path / f"{redact}.md", "markdown", redact=redact).read_text() for redact in (False, True)
    ]
    assert texts[0].splitlines()[0] == texts[1].splitlines()[0] and len(find_leaks(texts[0])) > 25
    assert session.meta["torch_version"] == (torch.__version__ if kind != "log" or LOGS_HAVE_VERSION else None)
    assert f"| torch | `{torch.__version__}` |" in texts[1] or session.meta["torch_version"] is None
