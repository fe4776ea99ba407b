"""Ctrl-C or a timeout while a watch begins or ends: wherever it comes, nothing is left and the next watch works."""

import tempfile
from pathlib import Path

import pytest
import torch

import compilediag as cd
from tests.live import programs
from tests.live.interruptions import ANY, EACH, MIDDLE, OWN, PACKAGE, World, find_places, interrupt, press_key, time_out
from tests.tiers import quick

#: The modules that begin and end a watch; what they call is interrupted by the tests of `start` and `stop`.
AROUND = tuple(f"{PACKAGE}/{name}.py" for name in ("watch", "recording/active_recording", "system/interrupts"))
#: The first lines of `stop()`, before it has done anything: as if the interrupt had come before the call.
BEFORE_THE_END = {"watch.py", "active_recording.py", "interrupts.py"}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The folder of temporary files, in memory if possible: a thousand sessions are created in it."""
    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else tmp_path) as name:
        monkeypatch.setattr(tempfile, "tempdir", name)
        yield Path(name)


def see_world(folder):
    with cd.watch():  # Imports what a watch imports.
        programs.numbers()
    return World(folder)


def nothing():
    """No preparation."""


def watching(detail):
    def watch():
        with cd.watch(detail=detail) as session:
            pass
        return session

    return watch


def check_that_a_watch_works():
    torch._dynamo.reset()
    with cd.watch() as session:
        programs.numbers()
    assert len(session.recompiles) == 3
    assert {row["status"] for row in programs.at_work(session).values()} == {"active"}


def interrupt_each(world, prepare, function, files, times, strike=press_key, stride=1):
    """Interrupt at one of so many places: those after which something was left, with the kinds of it and its text."""
    places, left, outcomes = find_places(prepare, function, cd.stop, files, times)[::stride], {}, []
    for place in places:
        outcomes.append(interrupt(place, prepare, function, files, strike))
        if outcomes[-1] == "not reached":
            cd.stop()  # Some lines run in the first watch alone.
        if leftovers := world.list_leftovers():
            left[place] = leftovers
            cd.stop()
            assert world.list_leftovers() == [], f"stop() does not remove what an interrupt left: {place}"
    assert [place for place, outcome in zip(places, outcomes, strict=True) if outcome == "swallowed"] == []
    assert outcomes.count("raised") > len(places) * 0.9 > 20
    return left


def check_interrupts(world, detail, files, times, strike=press_key, stride=1):
    """No interrupt of `start`, of `stop` or of a `with` statement leaves anything."""

    def start():
        return cd.start(detail=detail)

    assert interrupt_each(world, nothing, start, files, times, strike, stride) == {}
    check_that_a_watch_works()
    left = interrupt_each(world, start, cd.stop, files, times, strike, stride)
    # There the watch goes on as it was, and the next `stop()` ends it.
    assert len(left) <= 10 and {Path(file).name for file, _, _ in left} <= BEFORE_THE_END
    assert all(any(kind.startswith("hooks: ['torch._dynamo") for kind in kinds) for kinds in left.values())
    check_that_a_watch_works()


#: A key at every second line and a signal at every sixth; `--long` has each of them at every line.
QUICK = [(press_key, 2), (time_out, 6)]
COMPLETE = pytest.mark.long("interrupts 1,200 beginnings and ends of a watch")


@pytest.mark.parametrize(
    ("strike", "stride"),
    [
        *quick(QUICK, [time_out], why="a key at every second line"),
        *(pytest.param(strike, 1, marks=COMPLETE) for strike, _ in QUICK),
    ],
)
def test_an_interrupt_at_any_line_of_start_and_stop_leaves_nothing_behind(folder, strike, stride):
    check_interrupts(see_world(folder), "full", OWN, MIDDLE, strike, stride)


def test_an_interrupt_at_any_line_around_a_block_leaves_nothing_behind(folder):
    assert interrupt_each(see_world(folder), nothing, watching("lean"), AROUND, MIDDLE) == {}
    check_that_a_watch_works()


@pytest.mark.long("interrupts 15,000 beginnings and ends of a watch, which takes minutes")
@pytest.mark.parametrize("detail", ["lean", "full"])
def test_an_interrupt_each_time_that_a_line_runs_leaves_nothing_behind(folder, detail):
    world = see_world(folder)
    check_interrupts(world, detail, OWN, EACH)
    assert interrupt_each(world, nothing, watching(detail), OWN, MIDDLE) == {}


@pytest.mark.long("interrupts 1,500 lines of Python and of torch too, which takes minutes")
def test_an_interrupt_in_what_a_beginning_calls_leaves_nothing_behind(folder):
    check_interrupts(see_world(folder), "full", ANY, MIDDLE)
