"""Session files of older schemas open: a copy is upgraded and has a key for every compile attempt."""

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pandas as pd
import pytest

from compilediag.errors import NotASession
from compilediag.events import (
    BY_TABLE,
    SCHEMA_VERSION,
    SOURCE_REASONS,
    Calls,
    Compile,
    GuardFailure,
    Phase,
    Recompile,
    SourceStatus,
)
from compilediag.session import load
from compilediag.storage.merging import add_part
from compilediag.storage.store import Store
from compilediag.storage.tables import frame_columns
from tests.unit.session_builder import SECOND, saved

GOLDEN = Path(__file__).resolve().parents[1] / "golden"
OLD = sorted(GOLDEN.glob("schema-[123].cdiag"))
WITH_KEYS = sorted(GOLDEN.glob("schema-[4-9].cdiag"))


def lost_seconds_by_time(recompiles, compiles):
    """`lost_s` as it was found before there were keys: a compile belongs to the last recompile of its id that had begun
    when it ended.
    """
    by = ["compile_id", "pid"]
    ends = compiles["time"] + pd.to_timedelta(compiles["duration_s"], unit="s")
    done = compiles[[*by, "duration_s"]].assign(time=ends.astype("datetime64[ns, UTC]")).sort_values("time")
    begun = recompiles[[*by, "time", "event_id"]].sort_values("time")
    owned = pd.merge_asof(done, begun, on="time", by=by).dropna(subset=["event_id"])
    return recompiles["event_id"].map(owned.groupby("event_id")["duration_s"].sum())


def older(session):
    """The session's file as a recording of schema 3 would have left it."""
    db = sqlite3.connect(session.path)
    db.execute("ALTER TABLE events DROP COLUMN compile_key")
    db.execute("ALTER TABLE recompiles DROP COLUMN closest_compile_key")
    db.execute("ALTER TABLE guard_failures DROP COLUMN entry_compile_key")
    db.execute("ALTER TABLE sources DROP COLUMN reason_code")
    db.execute("UPDATE meta SET value = '3' WHERE key = 'schema_version'")
    db.commit()
    db.close()
    return session.path


def keys_of(session, kind):
    return [row.compile_key for row in session.data.rows(kind)]


@pytest.mark.parametrize("file", [*OLD, *WITH_KEYS], ids=lambda file: file.stem)
def test_a_golden_session_opens_and_stays_as_it_is(file, tmp_path):
    copy = shutil.copy(file, tmp_path / file.name)
    before = copy.read_bytes()
    session = load(copy)
    assert session.meta["schema_version"] == SCHEMA_VERSION and session.path == copy
    assert session.summary() and len(session.compiles) > 20
    for table in BY_TABLE:
        assert list(getattr(session, table).columns) == list(frame_columns(table))
    assert copy.read_bytes() == before and [p.name for p in tmp_path.iterdir()] == [copy.name]


@pytest.mark.parametrize("file", OLD, ids=lambda file: file.stem)
def test_keys_join_what_ids_and_times_joined(file):
    session = load(file)
    recompiles, compiles = session.recompiles, session.compiles
    expected = lost_seconds_by_time(recompiles, compiles)
    pd.testing.assert_series_equal(recompiles["lost_s"], expected.astype("float64"), check_names=False)
    typed = [row.lost_s for row in session.data.rows(Recompile)]
    assert typed == pytest.approx(expected.tolist())
    forward = compiles[compiles["trigger"] == "dynamo"]
    assert forward["compile_key"].is_unique and forward["compile_id"].duplicated().any()
    assert set(recompiles["closest_compile_key"]) <= set(forward["compile_key"])
    assert set(session.guard_failures["entry_compile_key"]) <= set(forward["compile_key"])
    assert session.events.query("compile_id.notna()")["compile_key"].notna().all()


def test_there_is_a_golden_session_of_each_schema():
    assert [file.stem for file in sorted(GOLDEN.glob("*.cdiag"))] == [
        f"schema-{n}" for n in range(1, SCHEMA_VERSION + 1)
    ]


@pytest.mark.parametrize("file", WITH_KEYS, ids=lambda file: file.stem)
def test_the_keys_of_a_recording_join_as_those_of_an_upgraded_file_do(file):
    session = load(file)
    recompiles, compiles = session.recompiles, session.compiles
    expected = lost_seconds_by_time(recompiles, compiles).astype("float64")
    pd.testing.assert_series_equal(recompiles["lost_s"], expected, check_names=False)
    forward = compiles[compiles["trigger"] == "dynamo"]
    assert forward["compile_key"].is_unique and forward["compile_id"].duplicated().any()
    assert set(session.guard_failures["entry_compile_key"]) <= set(forward["compile_key"])
    assert session.events.query("compile_id.notna()")["compile_key"].notna().all()


def test_the_keys_of_a_recording_stay_as_they_are():
    db = sqlite3.connect(GOLDEN / "schema-4.cdiag")
    keys = [key for (key,) in db.execute("SELECT compile_key FROM events ORDER BY id")]
    db.close()
    assert (
        load(GOLDEN / "schema-4.cdiag").events["compile_key"].astype(object).where(lambda c: c.notna(), None).tolist()
        == keys
    )


def test_frames_have_calls_since_schema_5():
    before, since = (load(GOLDEN / f"schema-{schema}.cdiag").stacks for schema in (4, 5))
    assert before["call"].isna().all() and before["parameters"].isna().all()
    assert "compiled(torch.randn(size, 4))" in set(since["call"]) and ["self", "x"] in since["parameters"].tolist()


def test_an_id_that_comes_again_is_another_attempt(tmp_path):
    events = [
        Compile(time_ns=1 * SECOND, compile_id="0/0", trigger="dynamo", duration_s=1.0),
        Phase(time_ns=1 * SECOND, compile_id="0/0", duration_s=0.5),
        Compile(time_ns=3 * SECOND, compile_id="0/0", trigger="lazy_backward", duration_s=1.0),
        Compile(time_ns=5 * SECOND, compile_id="0/0", trigger="dynamo", duration_s=1.0),
        Phase(time_ns=5 * SECOND, compile_id="0/0", duration_s=0.5),
        Phase(time_ns=9 * SECOND),
    ]
    session = load(older(saved(tmp_path, *events)))
    first, backward, second = keys_of(session, Compile)
    assert first == backward != second and keys_of(session, Phase) == [first, second, None]


def test_entries_from_before_the_recording_have_keys_of_their_own(tmp_path):
    events = [
        Calls(time_ns=1 * SECOND, compile_id="0/0", count=3),
        Recompile(time_ns=2 * SECOND, compile_id="0/1", closest_compile_id="0/0"),
        GuardFailure(time_ns=2 * SECOND, compile_id="0/1", entry_compile_id="0/0"),
        Compile(time_ns=2 * SECOND - 1, compile_id="0/1", trigger="dynamo", duration_s=1.0),
    ]
    session = load(older(saved(tmp_path, *events)))
    [calls], [recompile], [failure], [compiled] = (
        session.data.rows(kind) for kind in (Calls, Recompile, GuardFailure, Compile)
    )
    assert calls.compile_key == recompile.closest_compile_key == failure.entry_compile_key is not None
    assert recompile.compile_key == failure.compile_key == compiled.compile_key != calls.compile_key
    assert recompile.lost_s == 1.0


def test_processes_have_keys_of_their_own(tmp_path):
    session = saved(tmp_path, *[Compile(time_ns=SECOND, compile_id="0/0", duration_s=1.0) for _ in range(2)])
    path = older(session)
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("UPDATE events SET pid = 7 WHERE id = (SELECT min(event_id) FROM compiles)")
    first, second = keys_of(load(path), Compile)
    assert first != second


def test_a_damaged_older_file_says_why_it_does_not_open(tmp_path):
    file = shutil.copy(OLD[-1], tmp_path / "a.cdiag")
    whole = file.read_bytes()
    file.write_bytes(whole[:8192] + bytes(len(whole) - 8192))
    with pytest.raises(NotASession, match=r"a\.cdiag"):
        load(file)


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError, sqlite3.DatabaseError])
def test_an_upgrade_that_ends_early_leaves_no_copy(tmp_path, monkeypatch, error):
    path = older(saved(tmp_path, Compile(time_ns=SECOND, compile_id="0/0", duration_s=1.0)))
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))

    def fail(*_):
        assert list(temporary.iterdir())
        raise error

    monkeypatch.setattr("compilediag.storage.upgrade.upgrade", fail)
    with pytest.raises(NotASession if error is sqlite3.DatabaseError else error):
        load(path)
    assert list(temporary.iterdir()) == []


# Merging


def test_merged_keys_stay_unique(tmp_path):
    parts = []
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        events = [
            Recompile(time_ns=SECOND, compile_key="0a.1", closest_compile_key="0a.0"),
            Compile(time_ns=SECOND, compile_key="0a.1", duration_s=1.0),
            Phase(time_ns=SECOND),
        ]
        parts.append(saved(tmp_path / name, *events).path)
    store = Store.create(tmp_path / "all.cdiag", {})
    for part in parts:
        add_part(store, part)
    store.close()
    session = load(tmp_path / "all.cdiag")
    first, second = keys_of(session, Compile)
    assert first == "0a.1" != second and second.endswith(".1")
    assert keys_of(session, Recompile) == [first, second] and keys_of(session, Phase) == [None, None]
    closest = [row.closest_compile_key for row in session.data.rows(Recompile)]
    assert closest == ["0a.0", second.replace(".1", ".0")]
    assert [row.lost_s for row in session.data.rows(Recompile)] == [1.0, 1.0]


def test_a_part_of_an_older_schema_is_upgraded_as_it_is_merged(tmp_path):
    store = Store.create(tmp_path / "all.cdiag", {})
    for file in OLD:
        add_part(store, file)
    store.close()
    session = load(tmp_path / "all.cdiag")
    assert len(session.compiles) == sum(len(load(file).compiles) for file in OLD)
    assert session.recompiles["lost_s"].notna().all()


@pytest.mark.parametrize(
    ("status", "reason", "code"),
    [
        ("active", None, None),
        ("off", None, None),
        ("off", "not asked for", "not_requested"),
        ("off", "detail is lean", "detail_level"),
        ("off", "nothing to watch: triton is not installed", "nothing_to_watch"),
        ("off", "the watch has ended", "watch_ended"),
        ("unavailable", "torch's trace log does not tell", "not_in_logs"),
        ("unavailable", "torch has no such function", "missing_api"),
        ("failed", "switched off after 5 errors, the last KeyError: 1", "errors"),
    ],
)
def test_the_state_of_a_source_in_an_older_file_gets_the_code_of_its_reason(status, reason, code, tmp_path):
    file = older(saved(tmp_path, SourceStatus(time_ns=1, name="trace", status=status, reason=reason)))
    (state,) = (row for row in load(file).data.rows(SourceStatus) if row.name == "trace")
    assert (state.status, state.reason, state.reason_code) == (status, reason, code)
    assert code is None or code in SOURCE_REASONS


# Two threads


def test_two_threads_with_one_id_are_distinguished(tmp_path):
    """torch counts the entries of a code object: two threads that compile it at once may be given the same id."""
    both = {"compile_id": "0/1", "function": "f"}
    events = [
        Recompile(time_ns=1, compile_key="0a.1", closest_compile_key="0a.0", **both),
        Recompile(time_ns=2, compile_key="0a.2", closest_compile_key="0a.0", **both),
        Compile(time_ns=3, compile_key="0a.2", duration_s=4.0, **both),
        Compile(time_ns=4, compile_key="0a.1", duration_s=1.0, **both),
    ]
    session = saved(tmp_path, *events)
    assert [row.lost_s for row in session.data.rows(Recompile)] == [1.0, 4.0]
    assert session.recompiles["lost_s"].tolist() == [1.0, 4.0]
