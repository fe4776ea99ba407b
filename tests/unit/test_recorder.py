"""The writing side: nothing is lost, nothing grows without bound, nothing of ours ends the writer."""

import os
import resource
import sqlite3
import threading
import time
import tracemalloc

import pytest

from compilediag import load
from compilediag.events import Artifact, Compile, Phase
from tests.inside import Recorder, WriterStatus, recorder_module, session_writer
from tests.unit.session_builder import META, Feed, put, recording


@pytest.fixture
def running(tmp_path):
    session, recorder, feed = recording(tmp_path)
    yield session, recorder, feed
    recorder.close()


def rss_mb():
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * resource.getpagesize() / 2**20


def wait_for_phase(path, name):
    """Wait until the file has a phase of this name."""
    reader = load(path)
    deadline = time.monotonic() + 300
    while name not in reader.phases["name"].tolist():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_pid_and_rank_are_those_of_the_process(tmp_path):
    session, recorder, _ = recording(tmp_path, Phase(time_ns=1), rank=lambda: 3)
    try:
        frame = session.phases
        assert frame["pid"].tolist() == [os.getpid()] and frame["rank"].tolist() == [3]
    finally:
        recorder.close()


def test_events_of_many_threads_are_all_there(running):
    session, recorder, _ = running

    def work(thread):
        for n in range(500):
            put(recorder, Phase(time_ns=n, name=f"{thread}-{n}"))

    threads = [threading.Thread(target=work, args=(t,)) for t in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    names = session.phases["name"].tolist()
    assert sorted(names) == sorted(f"{t}-{n}" for t in range(8) for n in range(500))
    for t in range(8):
        assert [n for n in names if n.startswith(f"{t}-")] == [f"{t}-{n}" for n in range(500)]


def test_a_flood_is_cut_counted_and_takes_no_memory(running):
    session, recorder, feed = running
    recorder.flush()
    before = rss_mb()
    with recorder._lock:  # the writer can't keep up at all
        for n in range(1_000_000):
            recorder.put(feed, _phase, n)
        grown = rss_mb() - before
    assert feed.dropped == 1_000_000 - recorder_module.MAX_WAITING
    assert grown < 200
    assert len(session.events.query("kind == 'phase'")) == recorder_module.MAX_WAITING
    assert rss_mb() - before < 800
    status = {row["name"]: row for row in session.status()}
    assert status["compiles"]["dropped"] == feed.dropped


def _phase(n):
    return [Phase(time_ns=n)]


def test_batches_of_many_sizes_leave_no_statements_in_memory(running):
    _, recorder, _ = running

    def write(sizes):
        for size in sizes:
            put(recorder, *(Phase(time_ns=n, name="p") for n in range(size)))
            recorder.flush()

    write((20, 100, 20))
    tracemalloc.start()
    try:
        write(range(20, 100))
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < 100_000


def test_the_payload_budget_holds_and_what_is_beyond_is_counted(tmp_path):
    texts = [f"{n}" + "x" * 400_000 for n in range(5)]
    items = [(Artifact(time_ns=n, name="graph"), text) for n, text in enumerate(texts)]
    session, recorder, feed = recording(tmp_path, *items, *items[:1], max_payload_mb=1)
    frame = session.artifacts
    kept = frame["digest"].notna().tolist()
    assert kept == [True, True, False, False, False, True], "a text that is kept already costs nothing"
    assert frame["size"].tolist() == [400_001] * 6
    assert feed.dropped == 3
    with pytest.raises(KeyError):
        session.artifact(int(frame["event_id"].iloc[2]))
    recorder.close()


# What goes wrong


class Unprintable(Exception):
    def __str__(self):
        raise RuntimeError("no text")


def test_an_event_that_can_not_be_made_costs_only_itself_and_its_source_hears_of_it(running):
    session, recorder, feed = running

    def broken():
        raise Unprintable

    put(recorder, Phase(time_ns=1, name="before"))
    recorder.put(feed, broken)
    recorder.put(feed, lambda: 1 / 0)
    recorder.put(feed, lambda: [(Artifact(time_ns=1), None)])
    put(recorder, Phase(time_ns=2, name="after"))
    assert session.phases["name"].tolist() == ["before", "after"]
    assert [type(error) for error in feed.errors] == [Unprintable, ZeroDivisionError, AttributeError]


UNFIT = {
    "an integer beyond 64 bits": Phase(time_ns=2**70),
    "an object in a text column": Phase(time_ns=1, name=object()),
    "an object in a number column": Phase(time_ns=1, depth=object()),
    "what JSON has no form for": Compile(time_ns=1, restart_reasons=[object()]),
}


@pytest.mark.parametrize("what", UNFIT)
def test_an_event_that_does_not_fit_costs_only_itself(running, what):
    session, recorder, feed = running
    put(recorder, Phase(time_ns=1, name="before"), UNFIT[what], Phase(time_ns=2, name="after"))
    assert session.phases["name"].tolist() == ["before", "after"]
    assert len(feed.errors) == 1 and feed.dropped == 1
    put(recorder, Phase(time_ns=3, name="later"))
    wait_for_phase(session.path, "later")
    assert recorder._thread.is_alive()
    assert load(session.path).phases["name"].tolist() == ["before", "after", "later"]


@pytest.fixture
def locked(tmp_path, monkeypatch):
    """(session, recorder, feed, unlock) of a recording whose file another connection has locked."""
    monkeypatch.setattr(session_writer, "LOCK_S", 0.05)
    monkeypatch.setattr(session_writer, "END_S", 0.2)
    session, recorder, feed = recording(tmp_path)
    recorder.feeds.append(WriterStatus(recorder))
    recorder.flush()
    other = sqlite3.connect(session.path, isolation_level=None, check_same_thread=False)
    other.execute("BEGIN EXCLUSIVE")
    yield session, recorder, feed, other.close
    other.close()
    recorder.close()


def put_names(recorder, names):
    for name in names:
        put(recorder, Phase(time_ns=1, name=name), (Artifact(time_ns=1, name=name), f"text of {name}"))
        recorder.flush()


@pytest.mark.swallows
def test_what_is_recorded_while_the_file_is_locked_is_written_later(locked, caplog):
    session, recorder, feed, unlock = locked
    put_names(recorder, "abc")
    assert session.phases.empty and caplog.text.count("locked") == 1
    unlock()
    put_names(recorder, "d")
    recorder.close()
    session.data.end_recording()
    later = load(session.path)
    assert later.phases["name"].tolist() == [*"abcd"]
    assert [later.artifact(row.event_id) for row in later.artifacts.itertuples()] == [f"text of {n}" for n in "abcd"]
    assert session.state == "stopped" and later.meta["stopped_ns"] is not None
    assert feed.dropped == 0 and {row["status"] for row in session.status()} == {"active"}


@pytest.mark.swallows
def test_a_file_that_stays_locked_is_given_up_and_its_session_shows_everything(locked, tmp_path):
    session, recorder, feed, _ = locked
    put_names(recorder, "abc")
    put(recorder, Phase(time_ns=1, name="in no batch yet"))
    recorder.close()
    session.flush()
    session.data.end_recording()
    assert session.phases["name"].tolist() == [*"abc", "in no batch yet"] and session.state == "lost"
    assert session.artifact(int(session.artifacts["event_id"].iloc[2])) == "text of c"
    states = {row["name"]: row for row in session.status()}
    assert (states["writer"]["status"], states["writer"]["reason_code"]) == ("failed", "lost")
    assert states["compiles"]["status"] == "active" and feed.dropped == 0
    assert load(session.save(tmp_path / "saved.cdiag")).phases["name"].tolist() == session.phases["name"].tolist()


@pytest.mark.swallows
def test_what_waits_for_a_file_has_a_limit_and_the_rest_is_counted(locked, monkeypatch):
    session, recorder, feed, _ = locked
    monkeypatch.setattr(session_writer, "MAX_WAITING_EVENTS", 10)
    put_names(recorder, map(str, range(20)))
    recorder.close()
    session.flush()
    kept = len(session.phases)
    assert 0 < kept < 10 and len(session.artifacts) == kept
    states = {row["name"]: row for row in session.status()}
    assert states["writer"]["dropped"] >= 2 * (20 - kept)
    assert {row["status"] for row in states.values()} == {"failed"}


@pytest.mark.swallows
def test_texts_that_wait_for_a_file_have_a_limit(locked, monkeypatch):
    _, recorder, _, _ = locked
    monkeypatch.setattr(session_writer, "MAX_WAITING_BYTES", 1_000)
    for n in range(20):
        put(recorder, (Artifact(time_ns=1, name=str(n)), str(n) * 200))
        recorder.flush()
    waiting = recorder._writer.waiting
    assert waiting and sum(len(text) for batch in waiting for _, text in batch.texts) <= 1_000


@pytest.mark.swallows
def test_the_rank_of_what_waits_is_known_later(locked):
    session, recorder, _, unlock = locked
    put_names(recorder, "a")
    recorder._ask_rank = lambda: 3
    put_names(recorder, "b")
    unlock()
    recorder.flush()
    recorder.flush()
    assert session.phases["rank"].tolist() == [3, 3]


def test_a_reader_with_an_open_transaction_costs_nothing(running):
    session, recorder, _ = running
    put_names(recorder, "a")
    reader = sqlite3.connect(session.path, isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM events").fetchone()
    put_names(recorder, "bc")
    recorder.close()
    session.data.end_recording()
    assert session.phases["name"].tolist() == [*"abc"] and session.state == "stopped"
    assert load(session.path).phases["name"].tolist() == [*"abc"]
    reader.close()


@pytest.mark.swallows
def test_a_thread_that_hangs_is_given_up(tmp_path, monkeypatch):
    """A disk can hang. Nobody waits for it but the thread."""
    monkeypatch.setattr(recorder_module, "PATIENCE_S", 0.1)
    monkeypatch.setattr(recorder_module, "RELEASE_S", 0.1)
    session, recorder, feed = recording(tmp_path)
    recorder.flush()
    hangs, ends = threading.Event(), threading.Event()
    recorder.put(feed, lambda: hangs.set() or ends.wait() or ())
    hangs.wait()
    recorder.release(Counting())
    recorder.end()
    assert recorder.lost is not None and recorder.is_ended
    session.data.end_recording()
    assert session.phases.empty
    ends.set()


class Counting:
    def tick(self, final=False):
        assert final


# The file beside other processes


#: Runs statements on a session file as another process, and prints what they give.
STATEMENTS = """
import sqlite3, sys
db = sqlite3.connect(sys.argv[1], isolation_level=None)
db.execute("PRAGMA busy_timeout=0")
for statement in sys.argv[2:]:
    try:
        print(db.execute(statement).fetchone())
    except sqlite3.OperationalError as error:
        print(error)
db.close()
"""


def test_looking_at_the_file_of_a_recording_keeps_the_locks_on_it(running, python):
    """Closing any descriptor of the file would drop them, and another process could remove the -wal file."""
    session, recorder, _ = running
    for n in range(3):
        put(recorder, Phase(time_ns=n))
        recorder.flush()
        assert load(session.path).compiles.empty
    done = python("-c", STATEMENTS, session.path, "PRAGMA journal_mode=DELETE")
    assert done.stdout == "database is locked\n"
    assert len(session.phases) == 3 and recorder.lost is None


def test_a_wal_file_that_another_process_has_emptied_costs_nothing(running, python):
    session, recorder, _ = running
    put(recorder, *(Phase(time_ns=n) for n in range(100)))
    recorder.flush()
    done = python("-c", STATEMENTS, session.path, "PRAGMA wal_checkpoint(TRUNCATE)")
    assert done.stdout == "(0, 0, 0)\n" and _wal(session.path) == 0
    for n in range(3):
        put(recorder, Phase(time_ns=n))
        recorder.flush()
    done = python("-c", STATEMENTS, session.path, "PRAGMA wal_checkpoint(TRUNCATE)", "UPDATE meta SET value = value")
    put(recorder, Phase(time_ns=1))
    assert len(session.phases) == 104 and recorder.lost is None


# The end


def test_close_writes_the_rest_into_one_file_and_marks_the_end(tmp_path):
    session, recorder, _ = recording(tmp_path, *(Phase(time_ns=n) for n in range(100)))
    begin = time.time_ns()
    recorder.close()
    assert [p.name for p in tmp_path.iterdir() if p.stat().st_size] == ["run.cdiag"] or not _wal(session.path)
    later = load(session.path)
    assert len(later.phases) == 100
    assert begin <= later.meta["stopped_ns"] <= time.time_ns()
    assert not recorder._thread.is_alive()


def _wal(path):
    wal = path.with_name(path.name + "-wal")
    return wal.stat().st_size if wal.exists() else 0


def test_a_recording_that_joined_another_ones_file_does_not_end_it(tmp_path):
    session, recorder, _ = recording(tmp_path)
    joined = Recorder(session.path, None).begin()
    put(joined, Phase(time_ns=1, name="joined"), feed=Feed("other"))
    joined.close()
    assert session.phases["name"].tolist() == ["joined"]
    assert session.meta["stopped_ns"] is None
    recorder.close()
    assert session.meta["stopped_ns"] is not None


def test_a_file_that_is_there_is_not_written_over(tmp_path):
    (tmp_path / "x.cdiag").write_text("precious")
    with pytest.raises(FileExistsError):
        Recorder(tmp_path / "x.cdiag", dict(META)).begin()
    assert (tmp_path / "x.cdiag").read_text() == "precious"


def test_an_end_that_is_complete_is_not_repeated(tmp_path, monkeypatch):
    waits = []
    monkeypatch.setattr(recorder_module, "finish_start", waits.append)
    _, recorder, _ = recording(tmp_path, Phase(time_ns=1))
    recorder.end()
    recorder.close()
    assert waits == []
