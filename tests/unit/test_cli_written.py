"""Commands that write a file say which, on stderr: their output stays what they print for other programs. They replace
only files of the kind that they write.
"""

import argparse
import contextlib
import json
import sqlite3

import pandas as pd
import pytest

import compilediag as cd
from compilediag.errors import CompilediagError
from tests.inside import list_commands, main

from .log_builder import compile_
from .session_builder import saved
from .tables_builder import compiled, sizes


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        (["report", "{session}", "-o", "{file}"], "out.html"),
        (["export", "{session}", "-o", "{file}"], "out.json"),
        (["export", "{session}", "-o", "{file}", "--format", "csv"], "tables"),
        (["diff", "{session}", "{session}", "--report", "{file}"], "diff.html"),
        (["check", "{session}", "--max-recompiles", "9", "--report", "{file}"], "check.html"),
    ],
)
def test_the_file_that_was_written_is_named(tmp_path, capsys, arguments, name):
    session, file = saved(tmp_path, compiled(), *sizes("4", "6")).path, tmp_path / name
    code = main([part.format(session=session, file=file) for part in arguments])
    assert code == (arguments[0] == "check"), "this session cannot be checked, but its report is written"
    captured = capsys.readouterr()
    assert captured.err == f"compilediag: wrote {file}\n" and file.exists() and "wrote" not in captured.out


#: Command and option -> a command line that writes OUT, and the file that it writes.
WRITERS = {
    "report -o": (["report", "SESSION", "-o", "OUT"], "out"),
    "diff --report": (["diff", "SESSION", "SESSION", "--report", "OUT"], "out"),
    "check --report": (["check", "SESSION", "--max-recompiles", "9", "--report", "OUT"], "out"),
    "plan --warmup": (["plan", "SESSION", "--warmup", "OUT"], "out"),
    "repro -o": (["repro", "SESSION", "-o", "OUT"], "out"),
    "ingest -o": (["ingest", "LOG", "-o", "OUT"], "out"),
    "export -o": (["export", "SESSION", "-o", "OUT"], "out"),
    "export -o (Markdown)": (["export", "SESSION", "--format", "markdown", "-o", "OUT"], "out"),
    "export -o (CSV)": (["export", "SESSION", "--format", "csv", "-o", "OUT"], "out/recompiles.csv"),
    "export -o (Parquet)": (["export", "SESSION", "--format", "parquet", "-o", "OUT"], "out/recompiles.parquet"),
    "run --report": (["run", "--report", "OUT", "SCRIPT"], "out"),
    "run --save": (["run", "--save", "OUT", "SCRIPT"], "out"),
    "try --save": (["try", "--save", "OUT", "SCRIPT"], "out"),
}
#: Those that run a script write the same kinds of files.
READERS = sorted(name for name in WRITERS if "SCRIPT" not in WRITERS[name][0])


def make_database(file):
    with contextlib.closing(sqlite3.connect(file)) as database, database:
        database.execute("CREATE TABLE experiments (name TEXT)")


#: Files that compilediag did not write.
FOREIGN = {
    "script": lambda file: file.write_text('"""Compile what the recorded program compiled."""\nimport torch\n'),
    "page": lambda file: file.write_text("<!doctype html>\n<html>\n<title>Results</title>\n<p>compilediag\n"),
    "database": make_database,
    "trace": lambda file: file.write_text(json.dumps({"traceEvents": [], "otherData": {}})),
    "CSV": lambda file: file.write_text("epoch,loss\n1,0.5\n"),
    "Parquet": lambda file: file.write_bytes(pd.DataFrame({"loss": [0.5]}).to_parquet()),
    "Markdown": lambda file: file.write_text("# Notes on torch.compile\n"),
    "blank": lambda file: file.write_text("\n"),
    "log": lambda file: file.write_text(compile_()),
}


@pytest.fixture
def fill(tmp_path):
    """`fill(name)`: the command line of a writer, and the file that it writes."""
    (tmp_path / "in").mkdir()
    session = saved(tmp_path / "in", compiled(trigger="dynamo", graph_ops=3), *sizes("4", "6")).path
    log, script = tmp_path / "in" / "a.log", tmp_path / "in" / "train.py"
    log.write_text(compile_())
    script.write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    values = {"SESSION": session, "LOG": log, "SCRIPT": script, "OUT": tmp_path / "out"}

    def fill(name):
        arguments, file = WRITERS[name]
        if "Parquet" in name:
            pytest.importorskip("pyarrow", reason="pyarrow is not installed")
        (tmp_path / file).parent.mkdir(exist_ok=True)
        return [str(values.get(part, part)) for part in arguments], tmp_path / file

    return fill


def test_every_command_that_writes_is_in_the_table():
    found = set()
    for command in list_commands():
        parser = argparse.ArgumentParser()
        command.add_arguments(parser)
        options = {option for action in parser._actions for option in action.option_strings}
        found |= {f"{command.name} {option}" for option in options & {"-o", "--report", "--save", "--warmup"}}
    assert found == {name.partition(" (")[0] for name in WRITERS}


@pytest.mark.parametrize("foreign", FOREIGN)
@pytest.mark.parametrize("name", WRITERS)
def test_a_file_of_another_kind_is_not_replaced(name, foreign, fill, capsys, tmp_path):
    line, file = fill(name)
    if foreign == "Parquet":
        pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    FOREIGN[foreign](file)
    before = file.read_bytes()
    assert main(line) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and f"{file} already exists and is not " in error
    assert file.read_bytes() == before and {each.name for each in tmp_path.iterdir()} == {"in", "out"}
    assert file.parent == tmp_path or [*file.parent.iterdir()] == [file]


@pytest.mark.parametrize("name", READERS)
def test_an_empty_file_and_an_earlier_one_are_replaced(name, fill):
    line, file = fill(name)
    file.touch()
    for _ in range(2):
        assert main(line) == (line[0] == "check")
        assert file.stat().st_size > 0


#: One writer of each kind of file.
KINDS = ("report -o", "plan --warmup", "ingest -o", "export -o", "export -o (Markdown)")


@pytest.mark.parametrize("name", KINDS)
def test_no_command_replaces_what_another_one_writes(name, fill):
    line, file = fill(name)
    assert main(line) == 0
    before = file.read_bytes()
    for other in {*KINDS} - {name}:
        assert main(fill(other)[0]) == 2 and file.read_bytes() == before, other


def test_python_refuses_the_same(fill, tmp_path):
    (tmp_path / "train.py").write_text("mine")
    session = cd.load(fill("report -o")[0][1])
    for write in (session.report, session.warmup, session.export, session.save):
        with pytest.raises(CompilediagError, match="already exists and is not"):
            write(tmp_path / "train.py")
    assert (tmp_path / "train.py").read_text() == "mine"


def test_a_report_is_named_by_its_session(tmp_path, monkeypatch, capsys):
    session = saved(tmp_path, compiled())
    monkeypatch.chdir(tmp_path)
    assert main(["report", str(session.path)]) == 0
    assert capsys.readouterr().err == f"compilediag: wrote {tmp_path / session.path.stem}.html\n"


def test_doctor_begins_with_the_verdict_and_says_how_to_install_what_is_missing(capsys, monkeypatch):
    monkeypatch.setenv("CXX", "no-such-compiler")
    assert main(["doctor"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("compilediag works: torch ")
    missing = [number for number, line in enumerate(lines) if line.startswith("missing: ")]
    assert "C++ compiler" in lines[missing[0]] and all(lines[number + 1].startswith("  ") for number in missing)
    assert not any(line.startswith("source ") for line in lines) and lines[-1].endswith("doctor --verbose")


def test_doctor_aligns_its_sources(capsys):
    assert main(["doctor", "--verbose"]) == 0
    rows = [line for line in capsys.readouterr().out.splitlines() if line.startswith("source ")]
    starts = {row.index(row.split()[2]) for row in rows}
    assert len(rows) > 10 and len(starts) == 1
