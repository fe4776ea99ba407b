"""The evidence of a session: what is made of its rows is made once, until the rows that it was made of change."""

import gc
import weakref

import pytest

from compilediag.diagnosis.evidence import Evidence, kept
from compilediag.events import CacheLookup, Compile, Recompile
from tests.unit.session_builder import SECOND, put, recording

made = []


@kept
def count_compiles(evidence):
    made.append("compiles")
    return len(evidence.rows(Compile))


@kept
def count_all(evidence):
    made.append("all")
    return count_compiles(evidence) + len(evidence.rows(CacheLookup))


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
