"""The tables: columns and dtypes as documented whatever is in them, lost seconds, and how fast they come."""

import dataclasses

import pandas as pd
import pytest

import compilediag as cd
from compilediag.events import BY_TABLE, Compile, Phase, Recompile, RowList, SourceStatus
from tests.unit.session_builder import SECOND, put, read_documented, recording, saved
from tests.unit.test_store import example

DOCUMENTED = read_documented()


def shown(frame):
    return {name: str(dtype) for name, dtype in frame.dtypes.items()}


@pytest.fixture(scope="module")
def empty(tmp_path_factory):
    return saved(tmp_path_factory.mktemp("empty"))


@pytest.fixture(scope="module")
def full(tmp_path_factory):
    """One event of every kind with a value in every column, and one without any."""
    items = [e for cls in BY_TABLE.values() for e in (example(cls), cls(time_ns=2 * SECOND))]
    return saved(tmp_path_factory.mktemp("full"), *items)


@pytest.mark.parametrize("table", ["events", *BY_TABLE])
@pytest.mark.parametrize("which", ["empty", "full"])
def test_columns_and_dtypes_are_the_documented_ones_with_rows_and_without(request, which, table):
    frame = getattr(request.getfixturevalue(which), table)
    assert [*shown(frame).items()] == [*DOCUMENTED[table].items()]


@pytest.mark.parametrize("table", BY_TABLE)
def test_a_frame_begins_with_what_its_reader_wants_to_see(full, table):
    kind = BY_TABLE[table]
    assert list(getattr(full, table).columns[: 1 + len(kind.shown_first)]) == ["compile_id", *kind.shown_first]


def test_the_first_columns_of_compiles_and_recompiles_say_what_happened(full):
    assert list(full.compiles.columns[:5]) == ["compile_id", "function", "line", "duration_s", "outcome"]
    first = ["compile_id", "function", "line", "guard_source", "guard_kind", "expected", "actual", "lost_s"]
    assert list(full.recompiles.columns[:8]) == first
    assert list(full.events.columns[:4]) == ["compile_id", "kind", "title", "duration_s"]


@pytest.mark.parametrize("table", [t for t in BY_TABLE if t != "sources"])
def test_values_come_back_and_missing_is_na(full, table):
    frame = getattr(full, table)
    cls = BY_TABLE[table]
    given, without = frame.iloc[0], frame.iloc[1]
    for name in DOCUMENTED[table]:
        if name in ("event_id", "time", "pid", "rank", "lost_s"):
            continue
        assert given[name] == getattr(example(cls), name), name
        assert without[name] is None or pd.isna(without[name]), name
    assert given["time"] == pd.Timestamp(SECOND, tz="UTC")


@pytest.mark.parametrize("cls", [cls for cls in BY_TABLE.values() if cls is not SourceStatus])
def test_typed_rows_are_the_events_that_were_recorded(full, cls):
    given, without = full.data.rows(cls)
    recorded = {"event_id": given.event_id, "pid": given.pid, "rank": given.rank, "lost_s": getattr(given, "lost_s", 0)}
    fields = {f.name: getattr(example(cls), f.name) for f in dataclasses.fields(cls)}
    assert {name: getattr(given, name) for name in fields} == {
        **fields,
        **{k: recorded[k] for k in recorded if k in fields},
    }
    assert without.event_id == given.event_id + 1 and without.compile_key is None


def test_typed_rows_are_read_as_they_are_added(tmp_path):
    session, recorder, _ = recording(tmp_path, Phase(time_ns=1, name="a"))
    first = session.data.rows(Phase)
    put(recorder, Phase(time_ns=2, name="b"))
    second = session.data.rows(Phase)
    recorder.close()
    session.data.end_recording()
    assert [row.name for row in first] == ["a"] and [row.name for row in second] == ["a", "b"]
    assert second[0] is first[0]


def test_a_recompile_costs_the_compiles_of_its_key(tmp_path):
    events = [
        Recompile(time_ns=1, compile_id="0/1", compile_key="a.1"),
        Recompile(time_ns=2, compile_id="0/1", compile_key="a.2"),
        Recompile(time_ns=3),
        Compile(time_ns=4, compile_key="a.1", duration_s=1.0),
        Compile(time_ns=5, compile_key="a.1", duration_s=0.5),
        Compile(time_ns=6, duration_s=4.0),
    ]
    session = saved(tmp_path, *events)
    assert [row.lost_s for row in session.data.rows(Recompile)] == [1.5, None, None]
    assert [row.lost_s for row in RowList(events).rows(Recompile)] == [1.5, None, None]
    assert [row.event_id for row in RowList(events).rows(Compile)] == [4, 5, 6]


def test_every_event_is_in_events_and_in_its_table_once(full):
    rows = {kind.kind: full.data.rows(kind) for kind in BY_TABLE.values()}
    assert sum(map(len, rows.values())) == len(full.events)
    assert sorted(row.event_id for own in rows.values() for row in own) == full.events["id"].tolist()
    assert full.events["kind"].value_counts().to_dict() == {kind: len(own) for kind, own in rows.items()}


def test_sources_has_the_last_state_of_each(tmp_path):
    def state(name, status, events):
        return SourceStatus(time_ns=SECOND, name=name, status=status, events=events)

    states = [state("a", "active", 1), state("b", "active", 1), state("a", "failed", 2)]
    frame = saved(tmp_path, *states).sources
    mine = frame[frame["name"].isin(["a", "b"])]
    assert mine[["name", "status", "events"]].values.tolist() == [["a", "failed", 2], ["b", "active", 1]]


def test_a_damaged_page_costs_a_frame_its_own_rows_alone(tmp_path):
    path = saved(tmp_path, *(Phase(time_ns=n, compile_id="0/0", name=f"phase {n:04d}") for n in range(1000))).path
    content = bytearray(path.read_bytes())
    page = content.index(b"phase 0500") // 4096 * 4096
    content[page : page + 4096] = b"\xff" * 4096
    path.write_bytes(content)
    names = [*cd.load(path).phases["name"]]
    assert 500 < len(names) < 1000 and names == sorted(names)
    assert "phase 0500" not in names and (names[0], names[-1]) == ("phase 0000", "phase 0999")


def test_a_frame_is_the_callers_own(full):
    first = full.phases
    first["name"] = "changed"
    assert full.phases["name"].tolist() != first["name"].tolist()


# Lost seconds


def recompile(number, key="a.1", **more):
    return Recompile(time_ns=number * SECOND, compile_id="0/1", compile_key=key, function=f"f{number}", **more)


def compiled(seconds, key="a.1", **more):
    return Compile(time_ns=SECOND, duration_s=seconds, compile_id="0/1", compile_key=key, **more)


def lost(folder, *events):
    frame = saved(folder, *events).recompiles
    return dict(
        zip(frame["function"], frame["lost_s"].astype(object).where(frame["lost_s"].notna(), None), strict=True)
    )


def test_a_first_compile_costs_no_recompile_anything(tmp_path):
    assert lost(tmp_path, compiled(2.0, "a.0"), recompile(1), compiled(1.0)) == {"f1": 1.0}


def test_lost_seconds_are_missing_until_the_compile_has_ended(tmp_path):
    assert lost(tmp_path, recompile(1), compiled(1.0, "a.5"), compiled(None)) == {"f1": None}


# Speed


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
