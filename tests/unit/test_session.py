"""The reading side: tables of a running and of a saved session, copies, status, and errors in one line."""

import json

import pandas as pd
import pytest

from compilediag import load
from compilediag.errors import CompilediagError
from compilediag.events import BY_TABLE, Artifact, Compile, GraphBreak, Phase, Recompile
from tests.unit.session_builder import SECOND, put, recording, saved


@pytest.fixture
def session(tmp_path):
    items = [
        Compile(time_ns=SECOND, compile_id="0/0", function="f", duration_s=1.5, restart_reasons=["a"], outcome="ok"),
        Recompile(time_ns=3 * SECOND, compile_id="0/1", function="f", guard_source="x"),
        Compile(time_ns=3 * SECOND, compile_id="0/1", function="f", duration_s=0.5, is_recompile=True),
        GraphBreak(time_ns=4 * SECOND, reason="why", hints=["one", "two"]),
        (Artifact(time_ns=5 * SECOND, name="graph"), "def forward(x):\n    return x + '\u00e9'"),
    ]
    return saved(tmp_path, *items)


def assert_same(one, other):
    for table in ["events", *BY_TABLE]:
        pd.testing.assert_frame_equal(getattr(one, table), getattr(other, table))
    assert one.meta == other.meta


def test_a_copy_is_the_session_with_its_texts(session, tmp_path):
    path = session.save(tmp_path / "copy.cdiag")
    copy = load(path)
    assert_same(session, copy)
    event_id = int(session.artifacts["event_id"].iloc[0])
    assert copy.artifact(event_id) == session.artifact(event_id) == "def forward(x):\n    return x + '\u00e9'"
    assert copy.state == "loaded" and session.state == "stopped"
    assert sorted(p.name for p in tmp_path.iterdir() if "copy" in p.name) == ["copy.cdiag"], "one file, no side files"


def test_a_copy_of_a_running_session_is_a_whole_file_and_the_recording_goes_on(tmp_path):
    running, recorder, _ = recording(tmp_path, Phase(time_ns=1, name="a"))
    running.save(tmp_path / "copy.cdiag")
    put(recorder, Phase(time_ns=2, name="b"))
    assert running.phases["name"].tolist() == ["a", "b"]
    assert load(tmp_path / "copy.cdiag").phases["name"].tolist() == ["a"]
    recorder.close()


def test_saving_over_itself_keeps_everything(session):
    before = {table: getattr(session, table) for table in BY_TABLE}
    session.save(session.path)
    again = load(session.path)
    for table, frame in before.items():
        pd.testing.assert_frame_equal(frame, getattr(again, table))


@pytest.mark.parametrize("target", ["missing/copy.cdiag", "/proc/copy.cdiag", "folder"])
def test_saving_where_it_can_not_be_is_one_line_and_leaves_nothing(session, tmp_path, target):
    (tmp_path / "folder").mkdir()
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(CompilediagError, match="can't be written") as error:
        session.save(tmp_path / target)
    assert "\n" not in str(error.value)
    assert sorted(tmp_path.rglob("*")) == before


def test_a_reader_elsewhere_sees_a_recording_grow(tmp_path):
    running, recorder, _ = recording(tmp_path)
    reader = load(running.path)
    seen = []
    for n in range(5):
        put(recorder, Phase(time_ns=n))
        recorder.flush()
        seen.append(len(reader.phases))
    assert seen == [1, 2, 3, 4, 5]
    assert reader.state == "loaded" and running.state == "watching"
    recorder.close()


def test_artifacts_that_are_not_there_raise_key_error(session):
    for event_id in (1, 999, -1):
        with pytest.raises(KeyError, match=str(event_id)):
            session.artifact(event_id)


def test_status_is_plain_python_and_goes_into_json(session):
    status = session.status()
    assert [set(s) for s in status] == [{"name", "status", "reason", "reason_code", "events", "dropped", "overhead_s"}]
    assert json.loads(json.dumps(status))[0] == {
        "name": "compiles",
        "status": "active",
        "reason": None,
        "reason_code": None,
        "events": 5,
        "dropped": 0,
        "overhead_s": 0.5,
    }


def test_an_empty_session_has_every_view(tmp_path):
    empty = saved(tmp_path)
    assert len(empty.events) == 1, "the state of its one source"
    assert [f.rule for f in empty.findings() if f.rule != "not_observed"] == []
    assert empty.progress() == []
    assert "0 compiles" in empty.summary()
