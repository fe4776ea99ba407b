"""`compilediag plan`, on a recorded session, without torch."""

import json

import pytest

from tests.inside import main
from tests.unit.session_builder import saved
from tests.unit.tables_builder import compiled, sizes


@pytest.fixture
def session(tmp_path):
    return saved(tmp_path, compiled(duration_s=3.0), *sizes("4", "6", "9", lost_s=None))


def test_the_plan_is_printed_as_text_code_and_json(session, capsys):
    def show(*options):
        assert main(["plan", str(session.path), *options]) == 0
        return capsys.readouterr().out

    assert show().startswith("1 change removes 2 of 2 recompiles") and "`x.shape[0]` has 3 values: 4, 6, 9" in show()
    code = ["# Once, before the first compiled call:", "torch.compiler.config.dynamic_sources = \"L['x']\""]
    assert show("--code").splitlines() == code
    plan = {"schema": "compilediag.plan/1", **session.plan().to_dict(), "omitted": {}}
    assert json.loads(show("--json")) == json.loads(json.dumps(plan))


def test_without_the_users_files_there_is_no_patch(session, capsys):
    assert main(["plan", str(session.path), "--patch"]) == 1
    captured = capsys.readouterr()
    assert captured.out == "" and captured.err.startswith("compilediag: no patch: ")
