"""Nothing that is raised in the writer's thread ends it: it is counted, and the recording goes on."""

import contextlib
import sys
import threading
from pathlib import Path

import pytest

from compilediag import Session
from compilediag.events import Artifact, Phase, SourceStatus
from tests.inside import RecordedData, Recorder, WriterStatus, recorder_module

from .session_builder import META, Feed, put

pytestmark = pytest.mark.swallows

#: What a step can raise: nothing of it may end the thread.
STRAY = (SystemExit, GeneratorExit, KeyboardInterrupt, MemoryError, RecursionError, ValueError)
#: The modules whose code runs in the thread.
FOLDER = Path(recorder_module.__file__).parents[1]
WRITING = {str(FOLDER / name) for name in ("recording/recorder.py", "storage/session_writer.py", "storage/store.py")}
#: The loop that catches everything, and what holds the lock: where a trace function raises beside a `with`, Python does
#: not leave the block.
LEFT_OUT = ("_run", "_take_turn")
#: The states of the sources: which of these lines run depends on the errors so far.
OF_STATES = ("WriterStatus.", "SourceStates.", "_outline")


class Injection:
    """A trace function of the writer's thread: it lists the steps of a batch, or raises at one of them, once."""

    def __init__(self):
        self.steps = []
        self.target = self.error = None
        self.is_listening = False

    def __call__(self, frame, event, argument):
        if frame.f_code.co_filename not in WRITING or frame.f_code.co_qualname.startswith(OF_STATES):
            return None
        step = (Path(frame.f_code.co_filename).name, frame.f_code.co_name, frame.f_lineno)
        if event in ("call", "line") and self.is_listening and step[1] not in LEFT_OUT:
            self.steps.append(step)
            if step == self.target:
                self.target = None
                raise self.error(f"injected at {step}")
        return self

    def resume(self):
        """Trace this thread again: Python stops to trace where a trace function raises."""
        sys.settrace(self)
        frame = sys._getframe()
        while frame is not None:
            frame.f_trace = self
            frame = frame.f_back
        return []


@pytest.fixture
def injected(tmp_path):
    """(injection, session, recorder) of a recording whose thread is traced."""
    injection = Injection()
    threading.settrace(injection)
    try:
        recorder = Recorder(tmp_path / "run.cdiag", dict(META)).begin()
    finally:
        threading.settrace(None)
    recorder.feeds = [Feed(), WriterStatus(recorder)]
    yield injection, Session(RecordedData(recorder.path, recorder.flush)), recorder
    recorder.close()


class Running:
    def __init__(self, name):
        self.name = name

    def state(self):
        return {"compile_id": self.name, "phases": [], "started_ns": 1}


def write(recorder, name):
    """Hand over one of each that a batch has, and wait until it is written."""
    recorder.progress[1] = Running(name)
    put(recorder, Phase(time_ns=1, name=name), (Artifact(time_ns=1, name=name), f"text of {name}"))
    recorder.flush(statuses=True)


@pytest.mark.long("fails at each of 100 lines in turn")
@pytest.mark.slow
def test_an_exception_at_any_line_of_the_thread_costs_at_most_one_batch(injected):
    injection, session, recorder = injected
    write(recorder, "first")
    injection.is_listening = True
    write(recorder, "listed")
    steps = [*dict.fromkeys(injection.steps)]
    assert len(steps) > 100 and {name for name, *_ in steps} == {Path(file).name for file in WRITING}
    for number, step in enumerate(steps):
        injection.target, injection.error = None, STRAY[number % len(STRAY)]
        recorder.put(recorder.feeds[0], injection.resume)
        recorder.flush()
        injection.target = step
        # What follows the batch that was waited for is reached in the next one.
        for again in range(3):
            write(recorder, f"hit {number} {again}")
        assert injection.target is None, f"{step} was not reached again"
        write(recorder, f"after {number}")
    injection.is_listening = False
    written = set(session.phases["name"])
    assert {f"after {number}" for number in range(len(steps))} <= written
    texts = {row.name: session.artifact(row.event_id) for row in session.artifacts.itertuples() if "after" in row.name}
    assert texts == {f"after {number}": f"text of after {number}" for number in range(len(steps))}
    assert recorder._thread.is_alive() and session.progress()[0]["compile_id"] == f"after {len(steps) - 1}"
    assert "injected at" in session.sources.set_index("name").loc["writer", "reason"]


def raise_error(error):
    raise error


#: What a step calls that is not the recorder's own, and how it is made to raise.
STEPS = {
    "the rank": lambda recorder, error: setattr(recorder, "_ask_rank", lambda: raise_error(error)),
    "a counter": lambda recorder, error: recorder.counters.append(Ticking(error)),
    "an event": lambda recorder, error: recorder.put(recorder.feeds[0], raise_error, error),
    "the last of several events": lambda recorder, error: recorder.put(recorder.feeds[0], make_then_raise, error),
    "the name of a cell": lambda recorder, error: setattr(recorder._cells, "rename", lambda event: raise_error(error)),
    "a state": lambda recorder, error: setattr(recorder.feeds[0], "status", lambda: raise_error(error)),
    "a compile in flight": lambda recorder, error: recorder.progress.update({2: Failing(error)}),
    "the file": lambda recorder, error: setattr(recorder._writer.store, "append", lambda *a, **b: raise_error(error)),
    "counting an error": lambda recorder, error: spoil_feed(recorder, error),
}


class Ticking:
    """A counter whose tick raises."""

    def __init__(self, error):
        self.error, self.errors = error, 0

    def tick(self, final=False):
        raise self.error

    def note_error(self, error):
        self.errors += 1


class Failing:
    def __init__(self, error):
        self.error = error

    def state(self):
        raise self.error


def make_then_raise(error):
    yield Phase(time_ns=1, name="made")
    raise error


def spoil_feed(recorder, error):
    recorder.feeds[0].note_error = lambda _: raise_error(error)
    recorder.put(recorder.feeds[0], raise_error, error)


@pytest.mark.parametrize("error", STRAY, ids=lambda error: error.__name__)
@pytest.mark.parametrize("step", STEPS)
def test_each_step_can_fail_for_good_and_the_rest_is_recorded(tmp_path, step, error):
    recorder = Recorder(tmp_path / "run.cdiag", dict(META)).begin()
    feed = Feed()
    recorder.feeds = [feed, WriterStatus(recorder)]
    session = Session(RecordedData(recorder.path, recorder.flush))
    write(recorder, "before")
    with undo(recorder):
        STEPS[step](recorder, error("stray"))
        write(recorder, "during")
        write(recorder, "still")
    assert recorder._thread.is_alive()
    write(recorder, "after")
    names = session.phases["name"].tolist()
    assert names[0] == "before" and names[-1] == "after"
    if step not in ("the file", "the name of a cell"):
        assert {"during", "still"} <= set(names)
    reasons = [row["reason"] for row in session.status() if row["reason"]]
    ticking = [counter.errors for counter in recorder.counters]
    assert feed.errors or any("stray" in reason for reason in reasons) or any(ticking)
    recorder.counters.clear()
    recorder.close()
    assert session.data.store.connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


@contextlib.contextmanager
def undo(recorder):
    """What a step has changed is as before after the block, but for what it has added."""
    ask, cells, store, feed = recorder._ask_rank, recorder._cells, recorder._writer.store, recorder.feeds[0]
    yield
    recorder._ask_rank = ask
    for changed, name in ((cells, "rename"), (store, "append"), (feed, "status"), (feed, "note_error")):
        changed.__dict__.pop(name, None)


def test_a_reader_gets_its_own_interrupt_and_the_writer_goes_on(injected):
    """What is raised in a thread that waits for the writer is not the writer's."""
    _, session, recorder = injected
    with recorder._lock:
        waiting = threading.Thread(target=recorder.flush)
        waiting.start()
        with pytest.raises(SystemExit):
            interrupt_flush(recorder)
    waiting.join()
    write(recorder, "later")
    assert session.phases["name"].tolist() == ["later"]
    assert isinstance(recorder.feeds[-1].status(), SourceStatus) and recorder.feeds[-1].status().reason is None


def interrupt_flush(recorder):
    """A flush in this thread that a signal handler of the program ends."""

    def leave(frame, event, argument):
        if frame.f_code.co_name == "wait":
            sys.settrace(None)
            raise SystemExit("of the program")
        return leave

    sys.settrace(leave)
    try:
        recorder.flush()
    finally:
        sys.settrace(None)


def test_a_thread_that_can_not_start_is_started_by_the_next_reader(tmp_path, monkeypatch):
    def refuse(thread):
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", refuse)
        recorder = Recorder(tmp_path / "run.cdiag", dict(META)).begin()
    recorder.feeds = [Feed()]
    session = Session(RecordedData(recorder.path, recorder.flush))
    put(recorder, Phase(time_ns=1, name="a"))
    assert recorder._thread is None and session.phases["name"].tolist() == ["a"]
    assert recorder._thread.is_alive()
    put(recorder, Phase(time_ns=1, name="b"))
    recorder.close()
    assert session.phases["name"].tolist() == ["a", "b"]
