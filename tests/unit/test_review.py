"""A check on GitHub: annotations, the summary of the step, the action; and findings as SARIF."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote

import pytest
import yaml

from compilediag.diagnosis.finding import SEVERITIES
from compilediag.events import GraphBreak
from tests.inside import main

from .session_builder import stored
from .tables_builder import ALL_ACTIVE, SECOND, compiled, recompile

ROOT = Path(__file__).resolve().parents[2]
CODE = "import torch\n\ndef f(x, n):\n    print(x)\n    return x * n\n"
HOSTILE = "a%0A::error::x\n::set-output name=a::b\r\n##[error]c,d:e\x1b[31m\u202e\0"


def saved(folder, *events):
    """A session of these events in which every source was active."""
    return stored(folder, *events, *ALL_ACTIVE)


@pytest.fixture
def workspace(tmp_path, monkeypatch):
    """The folder of a repository in a step of a workflow."""
    folder = tmp_path / "my work, 100%: ü"
    folder.mkdir()
    (folder / "model.py").write_text(CODE)
    (tmp_path / "summary.md").touch()
    for name, value in list_variables(tmp_path, folder).items():
        monkeypatch.setenv(name, value)
    return folder


def list_variables(folder, workspace):
    files = {
        name: folder / f"{name.rpartition('_')[2].lower()}.md" for name in ("GITHUB_STEP_SUMMARY", "GITHUB_OUTPUT")
    }
    paths = {**files, "GITHUB_WORKSPACE": workspace, "GITHUB_ACTION_PATH": ROOT, "RUNNER_TEMP": folder / "temp"}
    return {"GITHUB_ACTIONS": "true", **{name: str(path) for name, path in paths.items()}}


def broken_at(file, line, code="print(x)", reason="why"):
    return GraphBreak(time_ns=SECOND, reason=reason, user_file=str(file), user_line=line, user_code=code)


def read_commands(shown):
    """(name, properties, message) of each command as GitHub's runner reads it, and the lines between them."""
    commands, texts, token = [], [], None
    for line in shown.split("\n"):
        found = re.fullmatch(r"::([\w-]+)(?: ([^:]*))?::(.*)", line.strip())
        if token is not None or found is None:
            texts.append(line)
            token = None if token is not None and line == f"::{token}::" else token
        elif found[1] == "stop-commands":
            token = found[3]
        else:
            pairs = [pair.partition("=") for pair in (found[2] or "").split(",")]
            commands.append((found[1], {key: unquote(value) for key, _, value in pairs}, unquote(found[3])))
    return commands, texts


def test_causes_that_break_a_limit_are_errors_at_the_users_line(workspace, tmp_path, capsys):
    model = workspace / "sub" / "a,b:c.py"
    session = saved(
        tmp_path,
        compiled(),
        broken_at(workspace / "model.py", 4),
        broken_at(model, 7, "g()"),
        recompile("n", "value", "1", "2"),
    )
    assert main(["check", session.path, "--max-graph-breaks", 0]) == 1
    commands, texts = read_commands(capsys.readouterr().out)
    errors = [command for command in commands if command[0] == "error"]
    assert [(given["file"], given["line"]) for _, given, _ in errors] == [("model.py", "4"), ("sub/a,b:c.py", "7")]
    assert all(given["title"] == "compilediag: graph_break" for _, given, _ in errors)
    (warning,) = [command for command in commands if command[0] == "warning"]
    assert "n was 1, then 2" in warning[2] and "file" not in warning[1], "its function is in no file of the repository"
    assert any(line.startswith("compilediag check: FAILED") for line in texts)


def test_a_limit_without_a_line_is_one_error_and_accepted_causes_are_no_warnings(workspace, tmp_path, capsys):
    session = saved(tmp_path, compiled(), broken_at(workspace / "model.py", 4))
    base = tmp_path / "base.toml"
    assert main(["check", session.path, "--baseline", base, "--update"]) == 0
    capsys.readouterr()
    assert main(["check", session.path, "--baseline", base, "--max-compile-s", 0]) == 1
    ((name, given, message),) = read_commands(capsys.readouterr().out)[0]
    assert (name, given) == ("error", {"title": "compilediag"}) and "at most 0 s allowed" in message


def test_hostile_texts_make_no_commands(workspace, tmp_path, capfd):
    file = workspace / "x%0A::error::y,z:.py"
    session = saved(
        tmp_path, compiled(), broken_at(file, 3, HOSTILE, HOSTILE), recompile("n", "value", HOSTILE, HOSTILE)
    )
    assert main(["check", session.path, "--max-graph-breaks", 0, "--max-recompiles", 0]) == 1
    shown = capfd.readouterr().out
    commands, _ = read_commands(shown)
    assert {command[0] for command in commands} == {"error"} and len(commands) == 2
    (at_line,) = [given for _, given, _ in commands if "file" in given]
    assert at_line == {"file": file.name, "line": "3", "title": "compilediag: graph_break"}
    outside = [line for line in shown.split("\n") if line.startswith("::error")]
    assert len(outside) == 2 and not [line for line in outside if "##[" in line.partition("::error")[0]]
    assert not re.search(r"[\x00-\x08\x0b-\x1f\u202e]", shown)
    summary = (tmp_path / "summary.md").read_text()
    assert not re.search(r"[\x00-\x08\x0b-\x1f\u202e]", summary)


def test_the_summary_has_the_verdict_the_causes_and_the_plan(workspace, tmp_path, capsys):
    session = saved(tmp_path, compiled(), broken_at(workspace / "model.py", 4))
    (tmp_path / "summary.md").write_text("## Of another command\n")
    assert main(["check", session.path, "--max-graph-breaks", 0]) == 1
    first, *lines = (tmp_path / "summary.md").read_text().splitlines()
    assert first == "## Of another command" and lines[0].startswith("**compilediag check: FAILED")
    assert "### 1 graph break, at most 0 allowed:" in lines and any("print(x)" in line for line in lines)
    assert sum("<details>" in line for line in lines) == sum("</details>" in line for line in lines) == 1


def test_the_option_decides_and_a_summary_that_cannot_be_written_fails_nothing(
    workspace, tmp_path, capsys, monkeypatch
):
    session = saved(tmp_path, compiled(), broken_at(workspace / "model.py", 4))
    assert main(["check", session.path, "--max-graph-breaks", 0, "--no-github"]) == 1
    assert "::" not in capsys.readouterr().out and (tmp_path / "summary.md").read_text() == ""
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "no" / "summary.md"))
    assert main(["check", session.path, "--max-graph-breaks", 9]) == 0
    assert "can't write the summary of the step" in capsys.readouterr().err
    monkeypatch.delenv("GITHUB_ACTIONS")
    monkeypatch.delenv("GITHUB_STEP_SUMMARY")
    assert main(["check", session.path, "--max-graph-breaks", 9]) == 0
    assert "::" not in capsys.readouterr().out
    assert main(["check", session.path, "--max-graph-breaks", 9, "--github"]) == 0
    assert [command[0] for command in read_commands(capsys.readouterr().out)[0]] == ["warning"]


def test_sarif_has_a_result_for_each_finding(workspace, tmp_path):
    events = [broken_at(workspace / "model.py", 4), broken_at("/elsewhere/lib.py", 9, "h()", HOSTILE)]
    session = saved(tmp_path, compiled(), *events, recompile("n", "value", "1", "2"))
    written = json.loads(session.export(tmp_path / "run.sarif", "sarif").read_text())
    assert written["version"] == "2.1.0" and written["$schema"].endswith("sarif-2.1.0.json")
    (run,) = written["runs"]
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    findings = session.findings()
    assert len(rules) == len({*rules}) and {*rules} == {finding.rule for finding in findings}
    assert all(rule["shortDescription"]["text"] for rule in run["tool"]["driver"]["rules"])
    assert [result["partialFingerprints"]["compilediag/v1"] for result in run["results"]] == [
        finding.fingerprint for finding in findings
    ]
    levels = dict(zip(SEVERITIES, ("error", "warning", "note"), strict=True))
    for result, finding in zip(run["results"], findings, strict=True):
        assert rules[result["ruleIndex"]] == result["ruleId"] == finding.rule
        assert result["level"] == levels[finding.severity] and result["message"]["text"].startswith(finding.title[:20])
    places = [place["physicalLocation"] for result in run["results"] for place in result["locations"]]
    assert places == [{"artifactLocation": {"uri": "model.py", "uriBaseId": "%SRCROOT%"}, "region": {"startLine": 4}}]
    assert session.export(tmp_path / "run.sarif", "sarif").read_text() == json.dumps(written, indent=1)


def test_check_writes_sarif_and_replaces_nothing_else(workspace, tmp_path, capsys):
    session = saved(tmp_path, compiled(), broken_at(workspace / "model.py", 4))
    out = tmp_path / "out.sarif"
    for _ in range(2):
        assert main(["check", session.path, "--max-graph-breaks", 0, "--sarif", out]) == 1
    assert len(json.loads(out.read_text())["runs"][0]["results"]) == 1
    out.write_text("{}")
    assert main(["check", session.path, "--max-graph-breaks", 0, "--sarif", out]) == 2
    assert out.read_text() == "{}" and str(out) in capsys.readouterr().err


def read_steps(text):
    """The `run:` steps of an action or a workflow."""
    read = yaml.safe_load(text)
    jobs = [read["runs"]] if "runs" in read else read["jobs"].values()
    return [step for job in jobs for step in job["steps"] if "run" in step]


@pytest.mark.slow
@pytest.mark.parametrize(("limit", "code"), [("9", 0), ("0", 1)])
def test_the_action_checks_and_keeps_the_report(limit, code, workspace, tmp_path):
    session = saved(tmp_path, compiled(), broken_at(workspace / "model.py", 4))
    session.save(workspace / "two words.cdiag")
    action = yaml.safe_load((ROOT / "action.yml").read_text())
    given = {"args": f"--max-graph-breaks {limit}\n'two words.cdiag'\n", "python": sys.executable}
    inputs = {name: given.get(name, spec.get("default")) for name, spec in action["inputs"].items()}
    install, check = read_steps((ROOT / "action.yml").read_text())
    assert "pip install" in install["run"] and "inputs" not in check["run"], "inputs are no code"
    replaced = {
        name: re.sub(r"\$\{\{ inputs\.(\w+) \}\}", lambda found: inputs[found[1]], value)
        for name, value in check["env"].items()
    }
    environment = {**os.environ, **replaced, "PYTHONPATH": str(ROOT)}
    shell = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", check["run"]]
    done = subprocess.run(shell, cwd=workspace, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == code, done.stderr
    outputs = dict(line.split("=") for line in (tmp_path / "output.md").read_text().splitlines())
    assert {*outputs} == {*action["outputs"]} and all(Path(file).exists() for file in outputs.values())
    assert [command[:2] for command in read_commands(done.stdout)[0]][:1] == [
        ({0: "warning", 1: "error"}[code], {"file": "model.py", "line": "4", "title": "compilediag: graph_break"})
    ]
    assert (tmp_path / "summary.md").read_text()


def test_the_action_expands_nothing(workspace, tmp_path):
    check = read_steps((ROOT / "action.yml").read_text())[1]
    hostile = '--max-recompiles 9 "$(touch ran)" `touch ran` $HOME ; touch ran'
    environment = {**os.environ, "COMPILEDIAG_PYTHON": "echo", "COMPILEDIAG_ARGS": hostile}
    done = subprocess.run(["bash", "-c", check["run"]], cwd=workspace, env=environment, capture_output=True, text=True)
    assert not (workspace / "ran").exists()
    assert done.stdout.rstrip().endswith("--max-recompiles 9 $(touch ran) `touch ran` $HOME ; touch ran")


@pytest.mark.long("runs the commands of a workflow")
@pytest.mark.slow
def test_the_workflow_of_the_documentation_runs(workspace, tmp_path):
    """Its own steps, without those that install; the script is one that compiles nothing, so the check fails."""
    (text,) = re.findall(r"```yaml\n(name: compile\n.*?)```", (ROOT / "docs" / "ci.md").read_text(), re.DOTALL)
    workflow = yaml.safe_load(text)
    uses = [step["uses"] for job in workflow["jobs"].values() for step in job["steps"] if "uses" in step]
    assert all("@" in use for use in uses)
    (workspace / "train.py").write_text("import sys\nprint(sys.argv[1:])\n")
    (workspace / ".compilediag.toml").write_text('format = "compilediag.baseline/1"\n')
    (check,) = [step for step in read_steps(text) if "compilediag check" in step["run"]]
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "compilediag").write_text(f'#!/bin/sh\nexec {sys.executable} -m compilediag "$@"\n')
    (tmp_path / "bin" / "compilediag").chmod(0o755)
    environment = {**os.environ, "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
    shell = ["bash", "-e", "-c", check["run"]]
    done = subprocess.run(shell, cwd=workspace, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 1 and "['--steps', '20']" in done.stdout, done.stderr
    assert "nothing was compiled" in (tmp_path / "summary.md").read_text()
