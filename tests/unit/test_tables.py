"""The tables: columns and dtypes as documented whatever is in them, lost seconds, and how fast they come."""

import dataclasses

import pandas as pd
import pytest

import compilediag as cd
from compilediag.events import BY_TABLE, Compile, Phase, Recompile, RowList, SourceStatus
from tests.unit.session_builder import SECOND, read_documented, saved
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


def test_a_recompile_costs_the_compiles_of_its_key(tmp_path):
    """Two threads that compile a function at once may be given the same id."""
    events = [
        Recompile(time_ns=1, compile_id="0/1", compile_key="a.1"),
        Recompile(time_ns=2, compile_id="0/1", compile_key="a.2"),
        Recompile(time_ns=3),
        Recompile(time_ns=4, compile_id="0/1", compile_key="a.3"),
        Compile(time_ns=5, compile_id="0/0", compile_key="a.0", duration_s=8.0),
        Compile(time_ns=6, compile_id="0/1", compile_key="a.2", duration_s=4.0),
        Compile(time_ns=7, compile_id="0/1", compile_key="a.1", duration_s=1.0),
        Compile(time_ns=8, compile_id="0/1", compile_key="a.1", duration_s=0.5),
        Compile(time_ns=9, compile_id="0/1", compile_key="a.3"),
        Compile(time_ns=10, duration_s=4.0),
    ]
    session = saved(tmp_path, *events)
    for rows in (session.data.rows(Recompile), RowList(events).rows(Recompile), session.recompiles.itertuples()):
        assert [None if pd.isna(row.lost_s) else row.lost_s for row in rows] == [1.5, 4.0, None, None]
    assert [row.event_id for row in RowList(events).rows(Compile)] == [5, 6, 7, 8, 9, 10]


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
