"""Session files that other processes write: their news, later files, and what becomes of a process that ends."""

import json
import shutil
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing

import pytest

import compilediag as cd
from compilediag.events import Compile
from tests.inside import Pump, Recorder, ViewModel

from .session_builder import META, SECOND, Feed, put
from .tables_builder import compiled, sizes


@pytest.fixture
def processes():
    """Starts a process that only exists; gives it."""
    started = []

    def start():
        started.append(subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.wait()


@pytest.fixture
def write(tmp_path, processes):
    """`write(rank)`: a recorder to the file of a rank, as if another living process had it."""
    recorders = []

    def begin(rank, ask_rank=None, process=None):
        meta = {**META, "pid": (process or processes()).pid}
        recorder = Recorder(tmp_path / f"rank-{rank}.cdiag", meta, rank=ask_rank or (lambda: rank)).begin()
        recorder.feeds = [Feed()]
        recorders.append(recorder)
        recorder.flush()
        return recorder

    yield begin
    for recorder in recorders:
        recorder.close()


def add(recorder, *items):
    put(recorder, *items)
    recorder.flush()


def look(session):
    """The session's next look at its files takes place now."""
    session.data._due = 0.0
    return session


class Running:
    def state(self):
        return {"function": "forward", "file": "/home/ada/model.py", "line": 30, "phases": ["one"], "started_ns": 1}


def test_new_events_and_later_ranks_appear(tmp_path, write):
    first = write(0)
    session = cd.load(tmp_path)
    assert session.state == "watching" and len(session.compiles) == 0
    add(first, compiled(compile_id="0/0"))
    assert look(session).compiles["compile_id"].tolist() == ["0/0"]
    second = write(1)
    add(second, compiled(compile_id="0/0", duration_s=5.0))
    add(first, *sizes("4", "6", "9"))
    assert look(session).compiles["rank"].tolist() == [0, 1]
    assert session.recompiles["actual"].tolist() == ["6", "9"] and len(session.plan().steps) == 1
    assert "read from 2 of 2 files" in session.sources["reason"].dropna().tolist()
    assert session.events["id"].is_unique
    for table in ("compiles", "recompiles"):
        assert len(cd.load(tmp_path).table(table)) == len(session.table(table)), "each row is copied once"


def test_what_compiles_is_shown_until_its_process_is_killed(tmp_path, write, processes):
    process = processes()
    first, second = write(0, process=process), write(1)
    session = cd.load(tmp_path)
    for recorder in (first, second):
        recorder.progress[1] = Running()
        recorder.flush()
    look(session).flush()
    assert [state["function"] for state in session.progress()]
    process.send_signal(signal.SIGKILL)
    process.wait()
    look(session).flush()
    killed = [file.was_killed for file in session.data.files.values()]
    assert killed == [True, False] and session.state == "watching"
    second.close()
    look(session).flush()
    assert session.state == "loaded" and session.progress() == [] and session.meta["stopped_ns"] is not None
    assert [file.was_killed for file in session.data.files.values()] == [True, False]


def test_an_ended_process_leaves_one_file_though_it_is_followed(tmp_path, write):
    recorder = write(0)
    session = cd.load(tmp_path)
    add(recorder, compiled())
    assert len(look(session).compiles) == 1
    recorder.close()
    assert len(look(session).compiles) == 1 and session.state == "loaded"
    assert [file.name for file in tmp_path.iterdir()] == ["rank-0.cdiag"]


def test_events_before_a_rank_was_known_get_it(tmp_path, write):
    ranks = []
    recorder = write("none", ask_rank=lambda: ranks[-1] if ranks else None)
    session = cd.load(tmp_path)
    add(recorder, compiled(compile_id="0/0"))
    assert look(session).compiles["rank"].isna().all() and session.data.rows(Compile)[0].rank is None
    ranks.append(3)
    add(recorder, compiled(compile_id="1/0"))
    assert look(session).compiles["rank"].tolist() == [3, 3]
    assert [row.rank for row in session.data.rows(Compile)] == [3, 3]


def test_a_rank_that_starts_again_is_added(tmp_path, write, processes):
    process = processes()
    add(write(0, process=process), compiled(compile_id="0/0"))
    other = write(1)
    session = cd.load(tmp_path)
    process.kill()
    process.wait()
    for file in tmp_path.glob("rank-0.cdiag*"):
        file.unlink()
    add(write(0), compiled(compile_id="7/0"))
    assert look(session).compiles["compile_id"].tolist() == ["0/0", "7/0"]
    assert session.compiles["compile_key"].is_unique and session.state == "watching"
    other.close()


def test_a_live_page_follows_the_ranks(tmp_path, write):
    first = write(0)
    session = cd.load(tmp_path)
    model = ViewModel(session.data)
    snapshot = model.snapshot()
    assert snapshot["meta"]["state"] == "watching" and "ranks" not in snapshot
    model.patch()
    second = write(1)
    add(first, compiled(compile_id="0/0"))
    add(second, compiled(compile_id="0/0", time_ns=2 * SECOND))
    first.close()
    second.close()
    look(session)
    patch = model.patch()
    assert [row[2] for row in patch["rows"]["compiles"]] == [0, 1]
    assert patch["meta"]["state"] == "loaded" and patch["ranks"]["count"] == 2 and patch["totals"]["compiles"] == 2


def test_the_dashboard_is_sent_what_ranks_add_until_they_end(tmp_path, write):
    first = write(0)
    session = cd.load(tmp_path)
    sent = []
    pump = Pump(ViewModel(session.data), sent.append)
    pump.start()
    second = write(1)
    add(second, compiled(compile_id="0/0"))
    first.close()
    second.close()
    pump._thread.join(timeout=300)
    assert not pump._thread.is_alive(), "it ends with the job"
    patches = [json.loads(message["patch"]) for message in sent if message["type"] == "patch"]
    rows = [row for patch in patches for row in patch.get("rows", {}).get("compiles", [])]
    assert [row[2] for row in rows] == [1] and patches[-1]["meta"]["state"] == "loaded"
    assert [message for message in sent if message["type"] == "error"] == []


def test_a_file_that_is_no_session_yet_is_read_when_it_is_one(tmp_path, write):
    write(0)
    session = cd.load(tmp_path)
    (tmp_path / "rank-1.cdiag").write_bytes(b"")
    look(session).flush()
    assert session.sources.set_index("name").loc["files", "reason"].startswith("read from 1 of 2 files; ")
    (tmp_path / "rank-1.cdiag").unlink()
    add(write(1), compiled())
    assert look(session).compiles["rank"].tolist() == [1]
    assert session.sources.set_index("name").loc["files", "reason"] == "read from 2 of 2 files"


def test_a_file_of_a_process_that_was_killed_while_it_ended_is_read(tmp_path, write, processes):
    """Its journal says that a transaction has to be undone, and who only reads cannot do that."""
    recorder = write(0)
    add(recorder, compiled())
    recorder.close()
    file = tmp_path / "rank-0.cdiag"
    with closing(sqlite3.connect(file, isolation_level=None)) as db, db:
        db.execute("PRAGMA cache_size=1")
        db.execute("BEGIN IMMEDIATE")
        db.execute("INSERT INTO progress VALUES (1, 1, hex(randomblob(100000)))")
        copy = tmp_path / "killed"
        copy.mkdir()
        for left in tmp_path.glob("rank-0.cdiag*"):
            shutil.copy(left, copy)
        db.execute("ROLLBACK")
    assert (copy / "rank-0.cdiag-journal").stat().st_size > 0
    assert len(cd.load(copy).compiles) == 1
