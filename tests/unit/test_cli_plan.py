"""`compilediag plan`, on a recorded session, without torch."""

import json

import pytest

from tests.inside import main
from tests.unit.session_builder import saved
from tests.unit.tables_builder import compiled, sizes


@pytest.fixture
def session(tmp_path):
    return saved(tmp_path, compiled(duration_s=3.0), *sizes("4", "6", "9", lost_s=None))


def test_the_plan_is_printed(session, capsys):
    assert main(["plan", str(session.path)]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("1 change removes 2 of 2 recompiles")
    assert "`x.shape[0]` has 3 values: 4, 6, 9" in shown


def test_only_the_code_is_printed(session, capsys):
    assert main(["plan", str(session.path), "--code"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines == ["# Once, before the first compiled call:", "torch.compiler.config.dynamic_sources = \"L['x']\""]


def test_the_plan_is_printed_as_json(session, capsys):
    assert main(["plan", str(session.path), "--json"]) == 0
    plan = {"schema": "compilediag.plan/1", **session.plan().to_dict(), "omitted": {}}
    assert json.loads(capsys.readouterr().out) == json.loads(json.dumps(plan))


def test_without_the_users_files_there_is_no_patch(session, capsys):
    assert main(["plan", str(session.path), "--patch"]) == 1
    captured = capsys.readouterr()
    assert captured.out == "" and captured.err.startswith("compilediag: no patch: ")
