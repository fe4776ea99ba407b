"""The file: what goes in comes out, what is damaged costs only itself, and nothing in it is ever executed."""

import dataclasses
import random
import shutil
import sqlite3
import zlib
from contextlib import closing
from pathlib import Path

import pytest

from compilediag import load
from compilediag.errors import NotASession
from compilediag.events import (
    BY_TABLE,
    KINDS,
    SCHEMA_VERSION,
    Artifact,
    Compile,
    GraphBreak,
    Phase,
    SourceStatus,
    columns,
)
from tests.inside import Store
from tests.unit.session_builder import META, SECOND, page_of, put, read_documented, recording, saved

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "tests/golden/schema-11.cdiag"
SESSIONS = [GOLDEN, *sorted((ROOT / "notebooks/data").glob("*.cdiag"))]

HOSTILE = {
    "lone surrogate": "a\ud800b",
    "NUL bytes": "a\0b\0",
    "line separators": "a\u2028b\u2029c\x85",
    "end of a script": "</script><!--<script>",
    "quotes": "'; DROP TABLE events; --\"",
    "right to left": "\u202eabc\u202c",
    "outside the BMP": "\U0001f525" * 3,
    "empty": "",
    "10 MB": "x" * 10_000_000,
}


@pytest.fixture
def store(tmp_path):
    made = Store.create(tmp_path / "s.cdiag", dict(META))
    yield made
    made.close()


def example(cls):
    """An event of a kind with a value of its dtype in every column."""
    values = {"string": "text", "Int64": 2**62, "float64": 0.25, "boolean": True}
    lists = {
        "list[str]": ["a", "b -> c"],
        "list[float | None]": [0.5, None],
        "list[int]": [1, 64],
        "dict[str, int]": {"a": 1},
        "dict[str, str]": {"a": "b -> c"},
    }
    values |= {**lists, "dict[str, Any]": {"a": [1, "b -> c"]}}
    spec = columns(cls)
    own = {
        f.name: values[spec[f.name]["shape"] or spec[f.name]["dtype"]] for f in dataclasses.fields(cls) if f.metadata
    }
    return cls(time_ns=SECOND, compile_id="0/1", compile_key="0a1b2c3d.1", duration_s=0.5, rank=3, pid=4, **own)


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_text_is_kept(tmp_path, name):
    text = HOSTILE[name]
    items = [GraphBreak(time_ns=SECOND, reason=text, user_code=text, hints=[text])]
    items.append((Artifact(time_ns=SECOND, name=text[:100]), text))
    session = saved(tmp_path, *items)
    row, kept = session.graph_breaks.iloc[0], text.replace("\ud800", "\\ud800")
    for shown in (row["reason"], row["user_code"], *row["hints"]):
        assert shown in (kept, text) or (len(text) > 1_000_000 and shown[:900] == text[:900] and len(shown) < 5_000)
    assert session.artifact(int(session.artifacts["event_id"].iloc[0])) == kept


def test_a_text_is_stored_once_and_compressed(tmp_path):
    text = "graph():\n" * 10_000
    session = saved(tmp_path, *((Artifact(time_ns=n, name="a"), text) for n in (1, 2)))
    with closing(sqlite3.connect(session.path)) as db:
        (count, size, kept) = db.execute("SELECT count(*), size, length(body) FROM payloads").fetchone()
    assert (count, size) == (1, len(text)) and kept < size / 50
    assert session.artifacts["digest"].nunique() == 1
    assert [session.artifact(int(event_id)) for event_id in session.artifacts["event_id"]] == [text, text]


def test_ids_go_on_where_another_writer_left_off(tmp_path, store):
    store.append([Phase(time_ns=1), Phase(time_ns=2)])
    other = Store.open(store.path, writable=True)
    other.append([Compile(time_ns=3)])
    other.close()
    store.append([Phase(time_ns=4)])
    assert [row[0] for row in store.connection.execute("SELECT id FROM events ORDER BY time_ns")] == [1, 2, 3, 4]
    assert store.connection.execute("SELECT event_id FROM compiles").fetchall() == [(3,)]


def test_a_batch_is_written_whole_or_not_at_all(store):
    with pytest.raises(OverflowError):
        store.append([Phase(time_ns=1, name="first"), Phase(time_ns=2**70, name="second")])
    assert store.connection.execute("SELECT count(*) FROM events").fetchone() == (0,)
    store.append([Phase(time_ns=1)])
    assert store.connection.execute("SELECT count(*) FROM events").fetchone() == (1,)


def test_a_reader_sees_what_a_writer_has_written_and_can_not_write(store):
    reader = Store.open(store.path)
    store.append([Phase(time_ns=1)])
    assert reader.connection.execute("SELECT count(*) FROM events").fetchone() == (1,)
    with pytest.raises(sqlite3.OperationalError):
        reader.append([Phase(time_ns=1)])
    reader.close()


@pytest.mark.parametrize("writable", [False, True])
def test_an_older_file_is_refused_in_one_line_that_says_what_to_do(store, writable):
    store.set_meta(schema_version=SCHEMA_VERSION - 1)
    store.close()
    before = store.path.read_bytes()
    with pytest.raises(NotASession) as error:
        Store.open(store.path, writable)
    message = str(error.value)
    assert str(store.path) in message and f"schema {SCHEMA_VERSION - 1}" in message and "\n" not in message
    assert "record it again, or ingest its log again" in message
    assert store.path.read_bytes() == before


@pytest.mark.parametrize("file", SESSIONS, ids=lambda file: file.name)
def test_the_sessions_of_this_repository_open_and_stay_as_they_are(file, tmp_path):
    copy = shutil.copy(file, tmp_path / file.name)
    before = copy.read_bytes()
    session = load(copy)
    assert session.meta["schema_version"] == SCHEMA_VERSION and session.summary() and len(session.compiles) > 0
    for table, documented in read_documented().items():
        assert list(getattr(session, table).columns) == list(documented)
    assert copy.read_bytes() == before and [p.name for p in tmp_path.iterdir()] == [copy.name]


def test_the_keys_of_a_recording_join_what_ids_and_times_join():
    session = load(GOLDEN)
    recompiles, compiles = session.recompiles, session.compiles
    forward = compiles[compiles["trigger"] == "dynamo"]
    assert forward["compile_key"].is_unique and forward["compile_id"].duplicated().any()
    assert set(recompiles["closest_compile_key"]) <= set(forward["compile_key"])
    assert set(session.guard_failures["entry_compile_key"]) <= set(forward["compile_key"])
    assert session.events.query("compile_id.notna()")["compile_key"].notna().all()


def test_a_file_with_a_header_alone_is_refused_in_one_line(tmp_path):
    """tests/unit/test_wrong_input.py has the other files; for this one `compilediag live --wait` waits."""
    path = tmp_path / "x.cdiag"
    path.write_bytes(b"SQLite format 3\0")
    with pytest.raises(NotASession) as error:
        load(path)
    assert str(path) in str(error.value) and "\n" not in str(error.value)
    assert path.read_bytes() == b"SQLite format 3\0"


# Damage


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A session of 4000 events of four kinds, and its bytes."""
    folder = tmp_path_factory.mktemp("whole")
    texts = [f"graph {n}\n" * 200 for n in range(20)]
    items = [
        *(
            Compile(time_ns=n * SECOND, compile_id=f"{n}/0", function="f" * 50, line=n, graph_ops=n)
            for n in range(1000)
        ),
        *(Phase(time_ns=n * SECOND, compile_id=f"{n}/0", name="phase" * 10, duration_s=1.0) for n in range(2000)),
        *(GraphBreak(time_ns=n, reason="r" * 60, hints=["a", "b"]) for n in range(980)),
        *((Artifact(time_ns=n, name="graph"), text) for n, text in enumerate(texts)),
    ]
    random.Random(0).shuffle(items)
    session, recorder, _ = recording(folder)
    for begin in range(0, len(items), 200):  # as a recording writes them: a batch at a time
        put(recorder, *items[begin : begin + 200])
        recorder.flush()
    recorder.close()
    return session.path.read_bytes()


def legible(path):
    """Events that can be read from each table of a file; every table must open."""
    session = load(path)
    assert page_of(session)["totals"] and session.summary()
    return {table: len(getattr(session, table)) for table in BY_TABLE}


@pytest.mark.slow
def test_pages_of_zeros_in_the_middle_cost_only_the_events_in_them(tmp_path, whole):
    path = tmp_path / "damaged.cdiag"
    rng = random.Random(1)
    for _ in range(12):
        begin = rng.randrange(40 * 4096, len(whole) - 8192) // 4096 * 4096
        path.write_bytes(whole[:begin] + bytes(8192) + whole[begin + 8192 :])
        found = legible(path)
        assert sum(found.values()) > 1500, (begin, found)


def test_of_a_file_that_was_cut_off_the_beginning_is_legible(tmp_path, whole):
    path = tmp_path / "cut.cdiag"
    path.write_bytes(whole[: len(whole) * 6 // 10])
    assert sum(legible(path).values()) > 1000


def test_a_damaged_text_is_a_key_error_that_says_so(tmp_path):
    session = saved(tmp_path, (Artifact(time_ns=1, name="graph"), "text"))
    raw = sqlite3.connect(session.path)
    raw.execute("UPDATE payloads SET body = x'00ff'")
    raw.commit()
    raw.close()
    with pytest.raises(KeyError, match="damaged"):
        load(session.path).artifact(int(session.artifacts["event_id"].iloc[0]))


# Nothing is executed


def test_a_saved_session_holds_numbers_text_json_and_deflated_text_only(tmp_path):
    text = "cposix\nsystem\n(S'touch /tmp/x'\ntR."
    items = [example(cls) for cls in KINDS if cls is not SourceStatus]
    session = saved(tmp_path, *items, (Artifact(time_ns=1, name="graph"), text))
    with closing(sqlite3.connect(session.path)) as db:
        tables = [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        cells = [c for table in tables for row in db.execute(f"SELECT * FROM {table}") for c in row]
    blobs = [c for c in cells if isinstance(c, bytes)]
    assert {type(c) for c in cells} <= {int, float, str, bytes, type(None)}
    assert [zlib.decompress(blob).decode() for blob in blobs] == [text]
    assert session.artifact(int(session.artifacts["event_id"].iloc[-1])) == text
