"""What fails in compilediag outside of a hook is shown, and the program goes on. `make soak` breaks every function."""

import ast
import inspect
import logging
import sys
import textwrap
import threading

import pytest
import torch

import compilediag as cd
from benchmarks.soak import own_failures
from compilediag import sources
from compilediag.events import Phase
from compilediag.recording import active_recording, recorder
from compilediag.recording.active_recording import ActiveRecording
from compilediag.sources.autotune.select_algorithm import SelectAlgorithm
from compilediag.sources.caches.key_history import CacheKeys
from compilediag.sources.dynamo import structured_trace
from compilediag.sources.hooks import late_imports, patches
from compilediag.sources.hooks.source import Source
from compilediag.storage import guarded_connection, rows, session_files, store
from compilediag.storage.recorded_data import RecordedData
from compilediag.storage.session_writer import FilePlace, SessionWriter
from tests.live import programs


def fail(*args, **kwargs):
    raise RuntimeError("own failure")


def reason_of(session, name):
    return {row["name"]: row["reason"] for row in session.status()}[name]


@pytest.mark.swallows
@pytest.mark.parametrize(
    ("owner", "function", "source"),
    [
        (SelectAlgorithm, "close", SelectAlgorithm.name),
        (CacheKeys, "status", "keys"),
        (structured_trace, "find_name", "trace"),
    ],
)
def test_what_fails_at_the_end_in_a_state_or_in_a_record_is_shown(owner, function, source, monkeypatch):
    with cd.watch() as session:
        monkeypatch.setattr(owner, function, fail)
        programs.numbers()
    monkeypatch.undo()
    assert "own failure" in reason_of(session, source)
    assert len(session.recompiles) == 3


@pytest.mark.swallows
@pytest.mark.parametrize(
    ("owner", "function"),
    [(recorder.Recorder, "end"), (active_recording.sources, "device_name"), (RecordedData, "announce_end")],
)
def test_what_fails_while_a_watch_ends_is_a_warning(owner, function, monkeypatch, caplog):
    with caplog.at_level(logging.WARNING, "compilediag"), cd.watch() as session:
        programs.numbers()
        session.flush()
        monkeypatch.setattr(owner, function, fail)
    monkeypatch.undo()
    assert "own failure" in caplog.text and sources.list_hooks() == [] and cd.current() is None
    assert len(session.recompiles) == 3
    with cd.watch() as later:
        pass
    assert later.meta["stopped_ns"] is not None


@pytest.mark.swallows
@pytest.mark.parametrize("function", ["end", "_shut_down"])
def test_a_source_whose_end_fails_leaves_no_patch(function, monkeypatch):
    with cd.watch():
        monkeypatch.setattr(Source, function, fail)
    monkeypatch.undo()
    assert sources.list_hooks() == []
    cd.stop()  # What is no patch needs another try.


def break_code(monkeypatch, function):
    """Make a function raise also where somebody holds it already."""
    monkeypatch.setattr(function, "__code__", own_failures.make_raising_code(function))


def run_sizes():
    """Compile and recompile; the results as lists."""
    torch._dynamo.reset()
    return [result.tolist() for result in programs.sizes()]


def is_shown(session):
    return any("own failure" in (row["reason"] or "") for row in session.status())


UNREMOVED = [
    *(
        ActiveRecording._detach,
        sources.detach,
        Source._remove_hooks,
        Source._shut_down,
        SelectAlgorithm.close,
        structured_trace._Listeners.leave,
    ),
    *(patches.Patch.remove, patches.Patch.passes_on_to, patches.skip_inert, patches._function_of, patches.remove_all),
    *(late_imports.WhenImported.remove, late_imports.remove_all),
]
UNWRITTEN = [
    *(SessionWriter.write, SessionWriter.check, SessionWriter.mark_end, store.Store.append, store.Store._append),
    *(FilePlace.note_wal, FilePlace.is_wal_cut, FilePlace.describe_absence, store.Store.set_meta),
    *(rows.insert_events, rows.insert_rows, rows._Layout.make_rows),
]
UNOPENED = [
    *(RecordedData._connect_again, RecordedData.close_during, RecordedData.announce_end),
    *(RecordedData.end_recording, store.Store.reopen, store.Store.release, store.Store.close, FilePlace.close),
    *(guarded_connection.connect, session_files.find_file_key, SessionWriter.close, SessionWriter._close_store),
]
#: What runs in the writer's thread, from outside to inside.
OF_THREAD = [
    *(recorder.Recorder._take_turn, recorder.Recorder._finish, recorder.Recorder._write_batch),
    *(recorder.Recorder._keep_unwritten, recorder.Recorder._write, recorder.Recorder._take),
]
AROUND_HOOKS = [
    *(Source.run_shielded, structured_trace._Listeners._is_wanted, structured_trace.torch_api.record_asked_for),
]


def each(functions):
    return pytest.mark.parametrize("function", functions, ids=lambda function: function.__qualname__)


@pytest.mark.swallows
@each(UNREMOVED)
def test_hooks_that_stop_could_not_remove_have_no_effect_and_the_next_one_removes_them(function, monkeypatch):
    expected = run_sizes()
    handlers = logging.getLogger("torch.__trace").handlers
    session = cd.start()
    watching = list(sources._attached)
    #: Where earlier tests have imported everything that a source waits for, nothing waits, so nothing is removed.
    is_called = function is not late_imports.WhenImported.remove or any(
        isinstance(finder, late_imports.WhenImported) for finder in sys.meta_path
    )
    break_code(monkeypatch, function)
    assert run_sizes() == expected
    assert cd.stop() is session
    seen = [(source.events, source.overhead_ns) for source in watching]
    assert run_sizes() == expected
    assert seen == [(source.events, source.overhead_ns) for source in watching]
    monkeypatch.undo()
    assert cd.stop() is None
    assert sources.list_hooks() == [] and logging.getLogger("torch.__trace").handlers is handlers
    assert is_shown(session) == is_called and len(session.recompiles) == 2


@pytest.mark.swallows
@each(UNWRITTEN)
def test_a_session_that_could_not_be_written_is_lost_and_says_why(function, monkeypatch):
    with cd.watch() as session:
        break_code(monkeypatch, function)
        assert len(programs.numbers()) == 5
    monkeypatch.undo()
    assert "own failure" in reason_of(session, "writer") and session.state == "lost"


@pytest.mark.swallows
@each(UNOPENED)
def test_a_session_whose_file_could_not_be_closed_or_opened_again_is_read_and_says_why(function, monkeypatch):
    with cd.watch() as session:
        programs.numbers()
        session.flush()
        break_code(monkeypatch, function)
    monkeypatch.undo()
    assert "own failure" in reason_of(session, "writer") and len(session.recompiles) == 3
    assert cd.stop() is None and session.state in ("stopped", "lost")


@pytest.mark.swallows
@each(OF_THREAD)
def test_who_waits_for_the_thread_goes_on_though_every_turn_of_it_fails(function, monkeypatch):
    with cd.watch() as session:
        break_code(monkeypatch, function)
        assert len(programs.numbers()) == 5
        reader = threading.Thread(target=session.flush, daemon=True)
        reader.start()
        reader.join(60)
        assert not reader.is_alive()
        ends = threading.Thread(target=cd.stop, daemon=True)
        ends.start()
        ends.join(60)
        assert not ends.is_alive()
    monkeypatch.undo()
    assert "own failure" in reason_of(session, "writer")
    assert not any(thread.name == "compilediag-writer" for thread in threading.enumerate())


@pytest.mark.swallows
@each(AROUND_HOOKS)
def test_what_fails_around_a_hook_is_shown_at_its_source(function, monkeypatch):
    expected = run_sizes()
    with cd.watch() as session:
        break_code(monkeypatch, function)
        assert run_sizes() == expected
    monkeypatch.undo()
    assert is_shown(session)


@pytest.mark.swallows
def test_an_event_of_the_last_batch_that_can_not_be_written_is_counted(monkeypatch):
    with cd.watch() as session:
        monkeypatch.setattr(Phase, "title", property(fail))
        programs.numbers()
    monkeypatch.undo()
    assert "own failure" in reason_of(session, "writer") and session.state == "stopped"
    assert len(session.recompiles) == 3 and len(session.phases) == 0


@pytest.mark.parametrize("name", own_failures.ENTRIES)
def test_what_nothing_of_ours_is_around_does_all_of_it_in_one_try(name):
    """The soak leaves these out: what Python or the program calls itself can't be shielded from outside."""
    module, owner, method = name.rsplit(".", 2)
    found = next(value for key, value in sys.modules.items() if key.endswith(module) and "compilediag" in key)
    function = ast.parse(textwrap.dedent(inspect.getsource(vars(vars(found)[owner])[method]))).body[0]
    shield, *after = [part for part in function.body if not is_docstring(part)]
    assert isinstance(shield, ast.Try) and not shield.finalbody and not shield.orelse
    at_the_limit, others = shield.handlers
    assert (ast.unparse(at_the_limit.type), ast.unparse(others.type)) == ("RecursionError", "BaseException")
    written_in_c = {"self.escaped.append", "self._source.escaped.append", "self._fail", "len"}
    assert list_calls([*at_the_limit.body, *after]) <= written_in_c
    assert list_calls(others.body) <= {"self.handle_escaped", "self._source.handle_escaped", "self._handle"}


def list_calls(parts):
    return {ast.unparse(node.func) for part in parts for node in ast.walk(part) if isinstance(node, ast.Call)}


def is_docstring(part):
    return isinstance(part, ast.Expr) and isinstance(part.value, ast.Constant)
