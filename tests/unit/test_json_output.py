"""With --json, the standard output of a command is one document of its schema, and nothing else."""

import json

import jsonschema
import pytest

from tests.inside import keep, list_commands, main
from tests.loading import read_schema

from .log_builder import GOLDEN
from .session_builder import saved
from .tables_builder import compiled, sizes

#: Command -> the schema of its document and the arguments.
PRINTED = {
    "plan": ("plan/1", ["plan", "run.cdiag"]),
    "findings": ("findings/1", ["findings", "run.cdiag"]),
    "last": ("findings/1", ["last", "findings"]),
    "ranks": ("ranks/1", ["ranks", "run.cdiag"]),
    "diff": ("diff/1", ["diff", "run.cdiag", str(GOLDEN)]),
    "diff with a page": ("diff/1", ["diff", "run.cdiag", str(GOLDEN), "--report", "diff.html"]),
    "coldstart": ("coldstart/1", ["coldstart", "run.cdiag", str(GOLDEN)]),
    "check": ("check/1", ["check", str(GOLDEN), "--max-recompiles", "99"]),
    "check that fails": ("check/1", ["check", str(GOLDEN), "--max-recompiles", "0"]),
    "doctor": ("doctor/1", ["doctor"]),
    "live": ("live/1", ["live", "run.cdiag"]),
}
#: Commands that run a script (tests/live/test_json_output.py), or that write files.
ELSEWHERE = {"run", "fix", "try", "report", "ingest", "export", "example", "skill", "mcp", "repro"}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    session = saved(tmp_path, compiled(), *sizes("4", "6", "9"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.delenv("COMPILEDIAG_HISTORY", raising=False)
    keep(session)
    monkeypatch.chdir(tmp_path)


def test_every_command_has_a_document_or_prints_none():
    assert {one.partition(" ")[0] for one in PRINTED} | ELSEWHERE == {command.name for command in list_commands()}


@pytest.mark.parametrize("command", ["plan", "diff", "check", "ranks"])
def test_a_document_fits_its_budget(command, folder, capsys):
    words = {"diff": ["run.cdiag", str(GOLDEN)], "check": [str(GOLDEN), "--max-graph-breaks", "99"]}
    arguments = [command, *words.get(command, [str(GOLDEN)]), "--json"]

    def read(*options):
        main([*arguments, *options])
        text = capsys.readouterr().out
        values = json.loads(text)
        jsonschema.validate(values, read_schema(values["schema"]))
        return text, values

    text, whole = read()
    assert whole["omitted"] == {} and read("--budget", str(len(text)))[1] == whole
    for part in (0.5, 0.8):
        text_cut, cut = read("--budget", str(int(len(text) * part)))
        if cut["omitted"]:
            assert len(text_cut) <= len(text) * part + 1
        for name, value in cut.items():
            if isinstance(value, list):
                assert value == whole[name][: len(value)]
                assert len(value) + cut["omitted"].get(name, 0) == len(whole[name])
    assert command in ("check", "ranks") or cut["omitted"]


@pytest.mark.parametrize("github", [False, True], ids=["", "on GitHub"])
@pytest.mark.parametrize("command", PRINTED)
def test_the_output_is_one_document(command, github, folder, capsys, monkeypatch):
    schema, arguments = PRINTED[command]
    monkeypatch.setenv("GITHUB_ACTIONS", str(github).lower())
    code = main([*arguments, "--json"])
    values = json.loads(capsys.readouterr().out)
    assert values["schema"] == f"compilediag.{schema}" and code == int("fails" in command)
    jsonschema.validate(values, read_schema(values["schema"]))
