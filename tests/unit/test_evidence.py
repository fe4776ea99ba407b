"""The evidence of a session: what is made of its rows is made once, until the rows that it was made of change."""

import dataclasses
import gc
import weakref

import pytest

from compilediag.diagnosis.evidence import Evidence, Stacks, kept
from compilediag.events import CacheLookup, Compile, Recompile, RowList, StackFrame
from tests.unit.session_builder import SECOND, put, recording, saved

made = []


@kept
def count_compiles(evidence):
    made.append("compiles")
    return len(evidence.rows(Compile))


@kept
def count_all(evidence):
    made.append("all")
    return count_compiles(evidence) + len(evidence.rows(CacheLookup))


@kept
def read_title(evidence):
    made.append("title")
    return evidence.meta.get("title")


@pytest.fixture(autouse=True)
def forget():
    made.clear()


def test_what_was_made_stays_until_its_own_rows_change(tmp_path):
    session, recorder, _ = recording(tmp_path, Compile(time_ns=SECOND, compile_key="a"))
    assert [count_all(session.data), count_all(session.data), count_compiles(session.data)] == [1, 1, 1]
    assert made == ["all", "compiles"]
    put(recorder, CacheLookup(time_ns=2 * SECOND))
    assert count_all(session.data) == 2 and made == ["all", "compiles", "all"]
    put(recorder, Compile(time_ns=3 * SECOND, compile_key="b"))
    assert count_all(session.data) == 3 and made[3:] == ["all", "compiles"]
    recorder.close()


def test_a_row_that_changes_in_the_middle_is_another_state(tmp_path):
    """A recompile gets its seconds when its compile has ended, after later ones."""
    recompiles = [Recompile(time_ns=number * SECOND, compile_key=f"{number}") for number in (1, 2)]
    session, recorder, _ = recording(tmp_path, *recompiles)
    read = kept(lambda evidence: [row.lost_s for row in evidence.rows(Recompile)])
    assert read(session.data) == [None, None]
    put(recorder, Compile(time_ns=3 * SECOND, compile_key="1", duration_s=2.0))
    assert read(session.data) == [2.0, None]
    recorder.close()


def test_facts_of_the_session_are_part_of_its_state(tmp_path):
    session = saved(tmp_path, Compile(time_ns=SECOND, compile_key="a"))
    assert read_title(session.data) == "test"
    session.data.set_meta(title="other")
    assert (read_title(session.data), count_compiles(session.data)) == ("other", 1)
    assert made == ["title", "title", "compiles"]


def test_the_plan_of_one_state_is_made_once(tmp_path):
    session = saved(tmp_path, Compile(time_ns=SECOND, compile_key="a"))
    assert session.plan() is session.plan()
    assert session.findings() == session.findings() and session.findings() is not session.findings()


def test_no_session_is_kept_alive_and_only_the_latest_state_is(tmp_path):
    session, recorder, _ = recording(tmp_path, Compile(time_ns=SECOND, compile_key="a"))
    states = []
    for number in range(3):
        session.summary(), session.plan()
        states.append(weakref.ref(Evidence.of(session.data)))
        put(recorder, Compile(time_ns=(number + 2) * SECOND, compile_key=f"{number}"))
    session.plan()
    assert [state() for state in states] == [None] * 3  # Without a collection: nothing refers to itself.
    recorder.close()
    data = weakref.ref(session.data)
    del session, recorder
    gc.collect()
    assert data() is None


def test_rows_in_memory_have_no_facts_and_no_texts():
    rows = RowList([Compile(time_ns=1)])
    evidence = Evidence.of(rows)
    assert (evidence.meta, evidence.state, evidence.is_ours, evidence.read_artifact(1)) == ({}, None, False, "")
    assert Evidence.of(evidence) is evidence is Evidence.of(rows)


def test_what_fails_is_not_kept():
    rows = RowList([Compile(time_ns=1)])

    @kept
    def fail(evidence):
        evidence.rows(Compile)
        raise ValueError

    for _ in range(2):
        with pytest.raises(ValueError):
            fail(rows)
    assert count_compiles(rows) == 1


def walk(key, *frames):
    rows = [StackFrame(time_ns=1, stack=stack, caller=caller, function=stack) for stack, caller in frames]
    return [frame.function for frame in Stacks(rows, ()).walk(key)]


def test_the_innermost_frame_comes_first():
    assert walk("f", ("main", None), ("g", "main"), ("f", "g")) == ["f", "g", "main"]


def test_a_stack_that_is_not_recorded_is_empty_and_one_that_is_cut_off_ends():
    assert walk("h", ("f", None)) == walk(None, ("f", None)) == []
    assert walk("f", ("f", "lost")) == ["f"]


def test_frames_that_name_each_other_end():
    assert walk("f", ("f", "g"), ("g", "f")) == ["f", "g"]


def test_a_backward_has_the_stack_of_its_forward():
    forward = Compile(time_ns=1, compile_key="a", stack="s")
    stacks = Stacks((), [forward, dataclasses.replace(forward, trigger="lazy_backward", stack=None)])
    assert (stacks.find("a"), stacks.find(None)) == ("s", None)
