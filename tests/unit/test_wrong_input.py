"""Every command and function, given every file that it does not read: one line that says what the file is."""

import contextlib
import gzip
import json
import os
import socket
import sqlite3
import threading

import pytest

import compilediag as cd
from compilediag.errors import CompilediagError, WrongInput
from tests.inside import list_commands, main

from .log_builder import compile_, golden
from .session_builder import saved
from .tables_builder import compiled, sizes

#: Command -> its arguments for a wrong FILE; GOOD is a session, OUT what would be written.
COMMAND_LINES = {
    "run": [["FILE"], ["--save", "OUT", "FILE", "--flag"]],
    "live": [["FILE"], ["FILE", "--plain"], ["FILE", "--json"], ["FILE", "--wait"]],
    "plan": [["FILE"], ["FILE", "--json"], ["FILE", "--patch"], ["FILE", "--code"], ["FILE", "--warmup", "OUT"]],
    "findings": [["FILE"], ["FILE", "--json"]],
    "mcp": [["FILE"], ["FILE", "--redact"]],
    "fix": [["FILE"]],
    "try": [["FILE"], ["--save", "OUT", "FILE"], ["--plan", "FILE", "script.py"]],
    "report": [["FILE", "-o", "OUT"]],
    "ingest": [["FILE", "-o", "OUT"], ["LOG", "FILE", "-o", "OUT"], ["FILE", "-o", "OUT", "--strict", "-j", "2"]],
    "ranks": [["FILE"], ["FILE", "--json"]],
    "coldstart": [["FILE", "GOOD"], ["GOOD", "FILE"]],
    "diff": [["FILE", "GOOD"], ["GOOD", "FILE", "--report", "OUT"], ["FILE", "FILE"]],
    "check": [
        ["FILE", "--max-recompiles", "9", "--report", "OUT"],
        ["GOOD", "--baseline", "FILE"],
        ["LOG", "FILE", "--max-recompiles", "9"],
    ],
    "repro": [["FILE"], ["FILE", "17", "-o", "OUT"]],
    "export": [["FILE", "-o", "OUT"], ["FILE", "--format", "csv", "-o", "OUT"], ["FILE", "--format", "markdown"]],
}
LINES = [[name, *line] for name, lines in COMMAND_LINES.items() for line in lines]
#: Commands that read no file.
WITHOUT_FILES = {"example", "doctor", "last", "skill"}


def make_sqlite(file):
    with contextlib.closing(sqlite3.connect(file)) as db, db:
        db.execute("CREATE TABLE experiments (experiment_id INTEGER PRIMARY KEY, name VARCHAR(256) NOT NULL)")
        db.execute("INSERT INTO experiments VALUES (1, 'a')")


def make_report(file):
    folder = file.parent / "of_report"
    folder.mkdir()
    saved(folder, compiled()).report(file)


def make_socket(file):
    with contextlib.closing(socket.socket(socket.AF_UNIX)) as made:
        made.bind(os.path.relpath(file))


def make_folder(file):
    file.mkdir()
    (file / "train.py").write_text("print(1)\n")
    (file / "notes.txt").write_text("text\n")


def make_folder_of_other_logs(file):
    file.mkdir()
    (file / "train.log").write_text("epoch 1: loss 0.5\n")
    (file / "empty.log").touch()


#: File -> how it is made, if not at once from bytes. None: it already exists, or does not exist at all.
WRONG = {
    "train.py": b"import torch\n" * 50,
    "empty.py": b"",
    "script": b"#!/usr/bin/env python3\nprint(1)\n",
    "train.ipynb": json.dumps({"cells": [], "nbformat": 4, "metadata": {}}).encode(),
    "report.html": make_report,
    "page": b"<!DOCTYPE html>\n<p>tlparse\n",
    "empty.cdiag": b"",
    "zeros.cdiag": bytes(8192),
    "empty.log": b"",
    "folder": make_folder,
    "folder_of_logs": make_folder_of_other_logs,
    "model.pt": b"PK\3\4\0\0" + bytes(range(256)) * 100,
    "absent.cdiag": None,
    "folder/absent": None,
    "train.py/absent": None,
    "mlflow.db": make_sqlite,
    "pipe": os.mkfifo,
    "socket": make_socket,
    "/dev/zero": None,
    "/dev/null": None,
    "/proc/self/mem": None,  # A regular file that can't be read, by root neither.
    "/etc/passwd": None,
    "data.json": b'{"traceEvents": []}',
    "settings.toml": b'[tool.ruff]\nselect = ["E"]\n',
    "console.log": b"epoch 1: loss 0.5\n",
    "torch_logs.txt": b"V0305 12:00:00.000000 100 torch/_dynamo/guards.py:1] [0/0] GUARDS:\n",
    "run.cdiag.gz": lambda file: file.write_bytes(gzip.compress(b"SQLite format 3\0" + bytes(9000))),
    "text.log.gz": lambda file: file.write_bytes(gzip.compress(b"no log\n" * 1000)),
    "cut.log.gz": lambda file: file.write_bytes(gzip.compress(golden())[:15]),
    "nul.log": bytes(100_000),
}
#: What a command reads although others do not.
READ = {
    "run": {"train.py", "empty.py", "script", "empty.cdiag", "empty.log", "/etc/passwd", "settings.toml"}
    | {"console.log", "torch_logs.txt"},
    "check": {"train.py", "empty.py", "script"},
}
#: What `live --wait` waits for.
WAITED_FOR = {"empty.cdiag", "empty.log", "folder", "folder_of_logs"}
WAITED_FOR |= {"absent.cdiag", "folder/absent", "train.py/absent"}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A folder with every wrong file, a session, a log and a script."""
    folder = tmp_path_factory.mktemp("in")
    here = os.getcwd()
    os.chdir(folder)
    for name, make in WRONG.items():
        if callable(make):
            make(folder / name)
        elif make is not None:
            (folder / name).write_bytes(make)
    (folder / "good").mkdir()
    saved(folder / "good", compiled(), *sizes("4", "6"))
    (folder / "good.log").write_text(compile_())
    (folder / "script.py").write_text("open('it_ran', 'w')\n")
    yield folder
    os.chdir(here)


def test_every_command_that_reads_a_file_is_in_the_table():
    assert {command.name for command in list_commands()} == COMMAND_LINES.keys() | WITHOUT_FILES


@pytest.mark.parametrize("line", LINES, ids=" ".join)
def test_a_wrong_file_is_one_line_and_nothing_is_written(line, files, tmp_path, capfd):
    out = tmp_path / "out"
    names = {"GOOD": files / "good" / "run.cdiag", "LOG": files / "good.log", "OUT": out}
    names["script.py"] = files / "script.py"
    before = snapshot(files)
    for name in WRONG:
        is_script = line[0] in ("run", "try", "fix") and "--plan" not in line
        reads = READ["run"] if is_script else READ.get(line[0], set()) if line[1] == "FILE" else set()
        is_beside_a_log = line[1] == "LOG" and name in ("empty.log", "empty.cdiag")
        if name in reads or is_beside_a_log or ("--wait" in line and name in WAITED_FOR):
            continue
        given = [str(files / name) if part == "FILE" else str(names.get(part, part)) for part in line]
        code = main(given)
        shown = capfd.readouterr()
        assert (code, shown.out) == (2, ""), f"{name}: {shown}"
        assert shown.err.startswith(f"compilediag: {files / name} ") and shown.err.count("\n") == 1, f"{name}: {shown}"
        assert "; " in shown.err, f"{name}: it does not say what to do: {shown.err}"
        assert list(tmp_path.iterdir()) == [] and snapshot(files) == before, f"{name}: something was written"


def snapshot(folder):
    return {
        path: (path.lstat().st_size, path.lstat().st_mtime_ns)
        for path in folder.rglob("*")
        if not path.name.endswith("-shm")
    }


FUNCTIONS = {
    "load": cd.load,
    "ingest": cd.ingest,
    "ingest of several": lambda path: cd.ingest(["good.log", path]),
    "diff": lambda path: cd.diff("good/run.cdiag", path),
    "coldstart": lambda path: cd.coldstart("good/run.cdiag", path),
}


@pytest.mark.parametrize("function", FUNCTIONS)
def test_functions_raise_the_same_error(function, files):
    for name in WRONG:
        if function == "ingest of several" and name.startswith("empty.") and name != "empty.py":
            continue
        with pytest.raises(WrongInput) as error:
            FUNCTIONS[function](files / name)
        assert str(error.value).startswith(f"{files / name} ") and "\n" not in str(error.value)


def test_a_session_and_a_log_in_each_others_place(files, capsys):
    session, log = files / "good" / "run.cdiag", files / "good.log"
    for function, path in ((cd.ingest, session), (cd.ingest, session.parent), (cd.load, log)):
        with pytest.raises(WrongInput, match="compilediag (plan|ingest)"):
            function(path)
    for line in (["ingest", session, "-o", "out"], ["run", session], ["run", log], ["live", log], ["try", session]):
        assert main(list(map(str, line))) == 2
        assert "compilediag plan" in (error := capsys.readouterr().err) or "compilediag ingest" in error
    assert not (files / "out").exists()


def test_a_file_that_is_not_a_session_is_not_replaced_by_one(files, tmp_path):
    script = tmp_path / "train.py"
    script.write_text("mine")
    session = cd.load(files / "good" / "run.cdiag")
    with pytest.raises(CompilediagError, match="not a compilediag session"):
        session.save(script)
    assert script.read_text() == "mine" and len(cd.load(session.save(tmp_path / "copy.cdiag")).compiles) == 1
    assert len(cd.load(session.save(tmp_path / "copy.cdiag")).compiles) == 1


# What is right, although it looks wrong at first.


def pad(text):
    """Lines of a payload, of 3 MB, whose record is not in the log."""
    return "".join(f"\t{line}\n" for line in ["x" * 99] * 30_000) + text


RIGHT = {
    "in the middle": pad(compile_()),
    "damaged lines": "no log line\nV0305 12:00:00.000000 100 torch/x.py:1] {cut\n\0\0\0\n" + compile_(),
    "a hole": "\0" * 70_000 + "\n" + compile_(),
    "a prefix": "".join(f"[node1] {line}\n" for line in compile_().splitlines() if not line.startswith("\t")),
    "one record": compile_().splitlines()[0] + "\n",
    "cut": compile_()[:-5],
}


@pytest.mark.parametrize("name", RIGHT)
@pytest.mark.parametrize("is_packed", [False, True])
def test_logs_that_are_damaged_or_cut_are_read(name, is_packed, tmp_path):
    log = tmp_path / "any name"
    log.write_bytes(gzip.compress(RIGHT[name].encode()) if is_packed else RIGHT[name].encode())
    assert main(["plan", str(log)]) == 0


def test_empty_logs_beside_others_are_read(tmp_path):
    (tmp_path / "a.log").write_text(compile_())
    (tmp_path / "b.log").touch()
    (tmp_path / "train.log").write_text("epoch 1\n")
    assert len(cd.ingest(tmp_path).compiles) == 1
    assert len(cd.ingest([tmp_path / "b.log", tmp_path / "a.log"]).compiles) == 1


def test_scripts_of_any_name_run(program_server, tmp_path):
    (tmp_path / "train").write_text("print('it ran')\n")
    done = program_server.run("-m", "compilediag", "run", "--quiet", tmp_path / "train")
    assert (done.returncode, done.stdout) == (0, "it ran\n"), done.stderr
    done = program_server.run("-m", "compilediag", "run", "--quiet", "/dev/stdin", input="print('it ran')")
    assert (done.returncode, done.stdout) == (0, "it ran\n"), done.stderr


def test_live_waits_for_a_session_that_has_just_begun(tmp_path, capsys):
    """The file of a session is empty for a moment, and the folder of ranks is empty for longer."""
    file = tmp_path / "ranks" / "run.cdiag"
    file.parent.mkdir()
    file.touch()
    seen = threading.Event()

    class Seen:
        def write(self, text):
            seen.set()
            return len(text)

        def flush(self):
            pass

    def begin():
        seen.wait(120)
        file.unlink()
        saved(file.parent, compiled())

    thread = threading.Thread(target=begin)
    thread.start()
    with contextlib.redirect_stderr(Seen()):
        code = main(["live", str(file), "--wait", "--plain"])
    thread.join()
    assert code == 0 and seen.is_set()
