"""A folder of sessions as one session: what each has, what can't be read, what is no session."""

import sqlite3
from contextlib import closing

import pytest

import compilediag as cd
from compilediag.errors import CompilediagError, NotASession
from compilediag.events import SCHEMA_VERSION, Artifact, Compile, Phase, Recompile
from tests.inside import Recorder

from .session_builder import META, SECOND, Feed, put
from .tables_builder import compiled, recompile


def written(path, *items, rank=None, **meta):
    """A session file of these items, whose process had `rank`: a number, or a function that tells it."""
    recorder = Recorder(path, {**META, **meta}, rank=rank if callable(rank) else lambda: rank).begin()
    recorder.feeds = [Feed()]
    put(recorder, *items)
    recorder.close()
    return path


@pytest.fixture
def folder(tmp_path):
    for rank in (10, 2):
        text = (Artifact(time_ns=SECOND, name="code"), f"of rank {rank}")
        rows = [compiled(compile_id=f"{rank}/0"), recompile("x", "value", "1", str(rank)), text]
        written(tmp_path / f"rank-{rank}.cdiag", *rows, rank=rank, created_ns=(20 - rank) * SECOND)
    return tmp_path


def test_all_files_are_one_session_in_order(folder):
    session = cd.load(folder)
    assert session.compiles["compile_id"].tolist() == ["2/0", "10/0"] and session.state == "loaded"
    assert session.compiles["rank"].tolist() == [2, 10] and session.recompiles["actual"].tolist() == ["2", "10"]
    assert [session.artifact(at) for at in session.artifacts["event_id"]] == ["of rank 2", "of rank 10"]
    assert session.meta["created_ns"] == 10 * SECOND and session.meta["title"] == folder.name
    details = session.sources.set_index("name").loc["files"]
    assert (details["status"], details["reason"], details["dropped"]) == ("active", "read from 2 of 2 files", 0)
    assert session.path.parent != folder and len(list(folder.iterdir())) == 2


def test_a_file_that_can_not_be_read_is_left_out_and_said_to_be(folder):
    (folder / "rank-3.cdiag").write_bytes(b"SQLite format 3\0" + b"x" * 5000)
    (folder / "notes.txt").write_text("something else")
    session = cd.load(folder)
    details = session.sources.set_index("name").loc["files"]
    assert (
        details["status"] == "failed"
        and "read from 2 of 3 files; " in details["reason"]
        and "rank-3" in details["reason"]
    )
    assert any("rank-3.cdiag is not a compilediag session" in f.title for f in session.findings())
    assert len(session.compiles) == 2


def test_a_folder_without_sessions_and_one_without_any_that_can_be_read(tmp_path):
    with pytest.raises(NotASession, match="contains no logs and no sessions"):
        cd.load(tmp_path)
    (tmp_path / "a.cdiag").write_text("no session")
    with pytest.raises(CompilediagError, match="a.cdiag is not a compilediag session"):
        cd.load(tmp_path)


@pytest.mark.parametrize(("version", "writer"), [(SCHEMA_VERSION + 1, "newer"), (SCHEMA_VERSION - 1, "older")])
def test_a_session_of_another_version_is_left_out(version, writer, folder):
    with closing(sqlite3.connect(folder / "rank-2.cdiag")) as db, db:
        db.execute("UPDATE meta SET value = ? WHERE key = 'schema_version'", (version,))
    session = cd.load(folder)
    assert set(session.compiles["rank"]) == {10}
    assert f"{writer} compilediag" in set(session.sources["reason"].dropna()).pop()


def test_merged_keys_stay_unique(tmp_path):
    for name in ("a", "b"):
        events = [
            Recompile(time_ns=SECOND, compile_key="0a.1", closest_compile_key="0a.0"),
            Compile(time_ns=SECOND, compile_key="0a.1", duration_s=1.0),
            Phase(time_ns=SECOND),
        ]
        written(tmp_path / f"{name}.cdiag", *events)
    data = cd.load(tmp_path).data
    first, second = (row.compile_key for row in data.rows(Compile))
    assert first == "0a.1" != second and second.endswith(".1")
    assert [row.compile_key for row in data.rows(Recompile)] == [first, second]
    assert [row.compile_key for row in data.rows(Phase)] == [None, None]
    closest = [row.closest_compile_key for row in data.rows(Recompile)]
    assert closest == ["0a.0", second.replace(".1", ".0")]
    assert [row.lost_s for row in data.rows(Recompile)] == [1.0, 1.0]


def test_a_view_in_somebody_elses_file_runs_nothing(folder):
    with closing(sqlite3.connect(folder / "rank-2.cdiag")) as db, db:
        db.execute("DROP TABLE graph_breaks")
        db.execute("CREATE VIEW graph_breaks AS SELECT 1 AS event_id, load_extension('/tmp/none') AS reason")
    session = cd.load(folder)
    assert "read from 1 of 2 files; " in str(session.sources["reason"].tolist())
    assert set(session.compiles["rank"]) == {10}, "all of a file or nothing"


def test_a_rank_stays_when_the_job_is_over(tmp_path):
    ranks = iter([1])
    recorder = Recorder(tmp_path / "run.cdiag", dict(META), rank=lambda: next(ranks, None)).begin()
    for number in range(3):
        put(recorder, Compile(time_ns=number), feed=Feed())
        recorder.flush()
    recorder.close()
    assert cd.load(tmp_path / "run.cdiag").compiles["rank"].tolist() == [1] * 3
