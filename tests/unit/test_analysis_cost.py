"""What a diagnosis costs grows with the rows, and not faster. Work is counted in calls, not in seconds."""

import sys

import pytest

import compilediag as cd
from compilediag.diagnosis import diagnose
from compilediag.diagnosis.causes import cause as causes
from compilediag.events import KINDS, CacheLookup, Compile, GuardFailure, Recompile, RowList, StackFrame
from tests.tiers import quick

from .session_builder import SECOND, put, recording

CALLER = StackFrame(time_ns=0, stack="s", function="<module>", file="train.py", line=3, code="f(x, n)", call="f(x, n)")


def make_events(recompiles, functions, frames=1, has_stack=True):
    """The events of a session in which each of `functions` is compiled again by an integer, in calls of some frames."""
    events = [CALLER]
    for number in range(functions):
        frame = {"stack": f"s{number}", "caller": "s", "function": f"f{number}", "file": "train.py", "line": 10}
        events.append(StackFrame(time_ns=0, **frame, parameters=["x", "n"], assigned=[]))
    for number in range(recompiles):
        function, value = number % functions, number // frames
        common = {"time_ns": SECOND * (number + 1), "compile_id": f"{function}/{number}", "compile_key": f"p.{number}"}
        place = {"function": f"f{function}", "file": "train.py", "line": 10}
        guard = {"guard_source": "n", "guard_kind": "value", "expected": str(value - 1), "actual": str(value)}
        entry = {"closest_compile_key": f"p.{number - functions}"}
        stack = f"s{function}" if has_stack else None
        events.append(Compile(**common, **place, duration_s=0.1, outcome="ok", stack=stack))
        if number >= functions:
            reason = f"L['n'] == {value - 1}"
            events.append(Recompile(**common, **place, **guard, **entry, reason=reason, entries_checked=1))
            entry = {"entry_compile_key": f"p.{number - functions}"}
            events.append(GuardFailure(**common, **guard, **entry, guard=reason, is_first=True))
    return events


def count_calls(work, *args):
    """Calls of functions, and of generators for each value, while `work` runs."""
    count = 0

    def note(frame, event, argument):
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(note)
    try:
        work(*args)
    finally:
        sys.setprofile(None)
    return count


SHAPES = {
    "one function": {"functions": lambda n: 1},
    "ten functions": {"functions": lambda n: 10},
    "many functions": {"functions": lambda n: n // 5},
    "many functions in one call": {"functions": lambda n: n // 2, "frames": lambda n: n // 2},
    "without stacks": {"functions": lambda n: 10, "has_stack": lambda n: False},
}


@pytest.mark.parametrize("shape", quick(SHAPES, ["ten functions"], why="thousands of recompiles"))
@pytest.mark.parametrize("work", ["findings", "plan"])
def test_twice_the_recompiles_are_twice_the_work(session_of, shape, work):
    few, many = (session_of(*make_events(n, **{name: of(n) for name, of in SHAPES[shape].items()})) for n in (400, 800))
    first, few, many = (getattr(session, work) for session in (cd.load(few.path), few, many))
    first()  # What is done once in a process.
    assert count_calls(many) < 2.4 * count_calls(few)


def test_the_causes_of_one_state_are_found_once(tmp_path, monkeypatch):
    """A second question costs nothing until something is new, and then the answer has it."""
    found, draw = [], causes.draw_graph
    monkeypatch.setattr(causes, "draw_graph", lambda *args: found.append(1) or draw(*args))
    by_time = sorted(make_events(41, 4), key=lambda event: event.time_ns)
    session, recorder, _ = recording(tmp_path, *by_time[:-3])
    session.plan(), session.findings(), session.summary()
    first = session.findings()
    put(recorder, CacheLookup(time_ns=SECOND, cache="fx_graph", outcome="miss"))
    session.plan(), session.findings(), session.summary()
    assert len(found) == 1
    put(recorder, *by_time[-3:])
    second = session.findings()
    assert len(found) == 2 and first != second
    assert second == session.findings() and session.plan().recompiles == len(session.recompiles)
    recorder.close()
    session.data.end_recording()
    assert diagnose(RowList([event for kind in KINDS for event in session.data.rows(kind)])) == session.findings()
