"""What is read with several statements is one state of the file: another process writes between any two of them."""

import pytest

from compilediag import load
from compilediag.events import KINDS, Artifact, Compile, Recompile, SourceStatus
from tests.inside import Pump, Store, ViewModel
from tests.unit.session_builder import META

#: Most columns are empty: these are not read, so their length is that of a statement before.
SPARSE = [
    Compile(time_ns=1, compile_key="a.1", duration_s=0.5),
    Recompile(time_ns=1, compile_key="a.1"),
    *(kind(time_ns=1) for kind in KINDS if kind not in (Artifact, Compile, Recompile)),
]


@pytest.fixture
def busy(tmp_path):
    """(session, list): before each statement that reads the session, each table gets a row. The list counts them."""
    store = Store.create(tmp_path / "run.cdiag", dict(META))
    session, added = load(tmp_path / "run.cdiag"), []

    def add(statement):
        # The writer's statements are not those of the reader.
        if statement.startswith("SELECT") and len(added) < 200:
            added.append(statement)
            text = f"text {len(added)}"
            store.append([*SPARSE, Artifact(time_ns=1, size=len(text), digest=text)], [(text, text)])

    session.data.store.connection.set_trace_callback(add)
    yield session, added
    session.data.store.connection.close()
    store.close()


@pytest.mark.parametrize("table", ["events", *(kind.table for kind in KINDS)])
def test_a_table_has_whole_rows(busy, table):
    session, added = busy
    for _ in range(3):
        before = len(added)
        frame = session.table(table)
        assert len(added) > before + 1, "it is read with several statements"
        ids = frame["id" if table == "events" else "event_id"]
        assert ids.is_unique and (table == SourceStatus.table or len(frame) > 0 or before == 0)


def test_recompiles_and_their_seconds_are_of_one_state(busy):
    session, _ = busy
    for _ in range(3):
        rows = session.data.rows(Recompile)
        with session.data.settled():
            keys = {row.compile_key for row in session.data.rows(Compile)}
        assert all((row.lost_s is not None) == (row.compile_key in keys) for row in rows)


def test_an_artifact_that_is_listed_has_its_text(busy):
    session, _ = busy
    for _ in range(3):
        rows = session.data.rows(Artifact)
        bodies = session.data.artifact_bodies(0, 1 << 40)
        assert {row.event_id for row in rows} <= bodies.keys()


def test_a_page_gets_each_row_once(busy):
    session, added = busy
    model, ids = ViewModel(session.data), {kind.table: [] for kind in KINDS}
    for _ in range(5):
        take_rows(model, ids)
    session.data.store.connection.set_trace_callback(None)
    take_rows(model, ids)
    assert len(added) > 10
    for kind in KINDS:
        if ids[kind.table] and kind not in (SourceStatus, Recompile):
            assert ids[kind.table] == session.table(kind.table)["event_id"].tolist()


def take_rows(model, ids):
    for table, rows in (model.patch() or {}).get("rows", {}).items():
        ids.get(table, []).extend(row[0] for row in rows)


def test_after_a_resync_a_source_keeps_its_row(busy):
    session, _ = busy
    model = ViewModel(session.data)
    model.patch()
    first = {row[0] for row in model.snapshot()["rows"]["sources"]}
    assert {row[0] for row in model.patch()["rows"]["sources"]} <= first


def test_a_resync_that_fails_is_shown_on_the_page(busy):
    session, _ = busy
    sent = []
    pump = Pump(ViewModel(session.data), sent.append)
    session.data.store.connection.close()
    pump.handle_message({"type": "resync", "seq": -1})
    assert [message["type"] for message in sent] == ["error"] and "closed database" in sent[0]["text"]
