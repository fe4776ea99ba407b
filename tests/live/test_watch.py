"""Begin and end: what a path may be, what a detail is, when the temporary file goes, what runs just now."""

import gc
import os
import tempfile
import threading
import time

import pytest
import torch

import compilediag as cd
from compilediag.errors import CompilediagError
from tests import inside
from tests.live import programs


def state_of(folder):
    return {p.name: p.read_bytes() for p in folder.rglob("*") if p.is_file()}


@pytest.mark.parametrize(
    "path", ["missing/run.cdiag", "missing/folder/", "/proc", "/proc/run.cdiag", "/dev/null", "source.py"]
)
def test_a_path_that_can_not_be_written_is_one_line_and_nothing_changes(tmp_path, path):
    (tmp_path / "source.py").write_text("precious = 1\n" * 100)
    before = state_of(tmp_path)
    with pytest.raises(CompilediagError) as error:
        cd.start(os.path.join(tmp_path, path))
    assert path.strip("/").split("/")[-1] in str(error.value) and "\n" not in str(error.value)
    assert cd.current() is None and state_of(tmp_path) == before
    assert os.path.exists("/dev/null")
    assert not [t for t in threading.enumerate() if t.name == "compilediag-writer"]


def test_an_unknown_detail_is_one_line_that_names_those_there_are():
    with pytest.raises(CompilediagError, match="'lean' or 'full'"):
        cd.start(detail="verbose")
    assert cd.current() is None


def test_an_earlier_session_at_the_path_is_replaced(tmp_path):
    path = tmp_path / "run.cdiag"
    for round in range(2):
        with cd.watch(path) as session:
            programs.sizes()
            torch._dynamo.reset()
        assert len(session.compiles) == len(cd.load(path).compiles) > 1, round
    assert [p.name for p in tmp_path.iterdir()] == ["run.cdiag"] or len(cd.load(path).compiles) > 1


def test_a_path_may_be_text_relative_and_odd(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    name = "a b?#%41\u00e9.cdiag"
    with cd.watch(name) as session:
        programs.kinds()
    assert (tmp_path / name).is_file()
    assert len(cd.load(name).compiles) == len(session.compiles)


def test_the_temporary_file_goes_with_its_session():
    with cd.watch() as session:
        programs.sizes()
    path = session.path
    assert path.exists() and len(session.compiles)
    del session
    gc.collect()
    assert not path.exists() and not list(path.parent.glob(path.name + "*"))


@pytest.mark.parametrize("is_ended", [True, False])
def test_a_session_without_a_place_for_its_temporary_file_removes_nothing(tmp_path, monkeypatch, is_ended):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "missing"))
    monkeypatch.chdir(tmp_path)
    for name in ("session.cdiag", "session.cdiag-wal", "in-use"):
        (tmp_path / name).write_text("precious")
    before = state_of(tmp_path)
    session = cd.start()
    if is_ended:
        cd.stop()
        assert session.state == "lost"
    del session
    cd.stop()
    gc.collect()
    assert state_of(tmp_path) == before


def test_the_session_says_what_it_is(tmp_path):
    before = time.time_ns()
    with cd.watch(detail="lean") as session:
        assert session.state == "watching" and session.meta["stopped_ns"] is None
    meta = session.meta
    assert session.state == "stopped"
    assert before < meta["created_ns"] <= meta["stopped_ns"] < time.time_ns()
    assert (meta["detail"], meta["pid"], meta["torch_version"]) == ("lean", os.getpid(), torch.__version__)


def test_lean_keeps_no_texts_and_full_does():
    texts = {}
    for detail in ("lean", "full"):
        torch._dynamo.reset()
        with cd.watch(detail=detail) as session:
            programs.numbers()
        texts[detail] = len(session.artifacts)
        trace = next(row for row in session.status() if row["name"] == "trace")
        assert trace["status"] == {"lean": "off", "full": "active"}[detail]
        assert len(session.recompiles) == len(session.compiles) - 1
    assert texts["lean"] == 0 and texts["full"] >= 8


def slow_backend(graph, inputs):
    entered.set()
    assert leave.wait(300)
    return graph


entered, leave = threading.Event(), threading.Event()


def test_what_compiles_now_is_shown_from_another_thread():
    def slowly(x, n):
        return x + len(n)

    function = programs.compiled(slowly, backend=slow_backend)
    with cd.watch() as session:
        model = inside.ViewModel(session.data)
        leave.set()
        function(torch.ones(2), "")
        earlier = session.compiles["duration_s"].iloc[0]
        entered.clear()
        leave.clear()
        began_ms = time.time() * 1000
        worker = threading.Thread(target=lambda: function(torch.ones(2), "n"))
        worker.start()
        assert entered.wait(300)
        [now] = model.patch()["now"]
        leave.set()
        worker.join()
        assert model.patch()["now"] == []
    assert (now["function"], now["compile_id"], now["trigger"]) == ("slowly", "0/1", "dynamo")
    assert now["file"] == __file__ and now["line"] == slowly.__code__.co_firstlineno
    assert "entire_frame_compile" in now["phases"] and now["phase"] == now["phases"][-1] == "backend_compile"
    assert now["before_s"] == pytest.approx(earlier)
    assert began_ms <= now["started_ms"] <= time.time() * 1000


def test_a_watch_that_begins_in_mid_compile_records_what_still_ends():
    def late(graph, inputs):
        cd.start()
        return graph

    programs.compiled(lambda x: x + 1, backend=late)(torch.ones(2))
    programs.compiled(lambda x: x - 1)(torch.ones(2))
    session = cd.stop()
    assert session.compiles["outcome"].tolist() == ["ok", "ok"]
    assert {row["status"] for row in programs.at_work(session).values()} == {"active"}
    assert session.progress() == []


def test_a_watch_that_ends_in_mid_compile_leaves_the_program_alone():
    def early(graph, inputs):
        cd.stop()
        return graph

    cd.start()
    session = cd.current()
    result = programs.compiled(lambda x: x + 1, backend=early)(torch.ones(2))
    assert result.tolist() == [2.0, 2.0]
    assert session.compiles.empty and session.progress() == []
