"""Copies of the package in one process, and modules that are reloaded: when all watches have ended, nothing stays."""

import importlib
import itertools
import re
import shutil
import sys
from pathlib import Path

import pytest
import torch

import compilediag
from tests.live.interruptions import World
from tests.live.programs import numbers

NAMES = ("compilediag", "vendored_one.compilediag", "vendored_two.compilediag")
ORDERS = list(itertools.permutations(range(len(NAMES))))


def find_modules():
    return {name: module for name, module in sys.modules.items() if name.partition(".")[0] == "compilediag"}


def run():
    """Compile, and recompile three times."""
    torch._dynamo.reset()
    return [result.tolist() for result in numbers()]


@pytest.fixture(scope="module")
def copies(tmp_path_factory):
    """The package that is tested, and two copies that other packages bring along."""
    folder = tmp_path_factory.mktemp("packages")
    for name in NAMES[1:]:
        copy = folder / name.replace(".", "/")
        shutil.copytree(Path(compilediag.__file__).parent, copy, ignore=shutil.ignore_patterns("__pycache__"))
        (copy.parent / "__init__.py").write_text("")
    sys.path.insert(0, str(folder))
    yield [importlib.import_module(f"{name}.watch") for name in NAMES]
    sys.path.remove(str(folder))


def see_world(folder):
    """To be called in the test: pytest has other handlers of logs before it."""
    with compilediag.watch():
        run()
    return World(folder)


def list_left(world):
    """What is left of any watch; a session's own file goes with the session."""
    return [text for text in world.list_leftovers() if not text.startswith(("files:", "descriptors:", "environment:"))]


def count_losses(session):
    """What the sources have counted as lost: rows, and errors, one of which can cost a row."""
    states = session.sources  # By its name: the classes of events are others after a reload.
    errors = [re.search(r"\d+", reason)[0] for reason in states["reason"][states["reason_code"] == "errors"]]
    return states["dropped"].sum() + sum(map(int, errors))


@pytest.mark.parametrize("order", ORDERS, ids=lambda order: "".join(map(str, order)))
def test_copies_of_the_package_leave_nothing_whatever_the_order_of_their_ends(copies, tmp_path, order):
    world = see_world(tmp_path)
    sessions = [copy.start() for copy in copies]
    results = run()
    for index in order:
        copies[index].stop()
        assert run() == results
    assert list_left(world) == []
    # Each copy has recorded as long as it ran: one program, and one for each copy that ended before it.
    expected = [3 * (1 + order.index(index)) for index in range(len(NAMES))]
    assert [len(session.recompiles) for session in sessions] == expected
    assert [row for session in sessions for row in session.status() if row["status"] == "failed"] == []


def test_a_copy_can_begin_and_end_while_another_one_watches(copies, tmp_path):
    world = see_world(tmp_path)
    with copies[0].watch() as outer:
        for copy in copies[1:]:
            with copy.watch() as inner:
                run()
            assert len(inner.recompiles) == 3
    assert len(outer.recompiles) == 3 * len(copies[1:]) and list_left(world) == []


@pytest.fixture
def modules():
    """The modules of the package, each as it was when the test ends: a reload makes other classes."""
    before = find_modules()
    states = {name: dict(vars(module)) for name, module in before.items()}
    yield list(states)
    for name in find_modules():
        del sys.modules[name]
    for name, state in states.items():
        vars(before[name]).clear()
        vars(before[name]).update(state)
    sys.modules.update(before)


@pytest.mark.swallows
@pytest.mark.parametrize("is_first_ended_first", [True, False])
def test_the_package_imported_once_more_leaves_nothing(tmp_path, modules, is_first_ended_first):
    """What the first one imports from now on is of the second one, so that rows may be lost. No hook is."""
    world = see_world(tmp_path)
    first = compilediag.watch()
    first.__enter__()
    for name in modules:
        del sys.modules[name]
    second = importlib.import_module("compilediag").watch()
    second.__enter__()
    results = run()
    for watch in (first, second) if is_first_ended_first else (second, first):
        watch.__exit__(None, None, None)
        assert run() == results
    assert list_left(world) == []


@pytest.mark.swallows
def test_a_watch_goes_on_and_ends_after_a_reload_of_all_modules(tmp_path, modules):
    """What is handed over while modules are reloaded may be lost, and is counted then."""
    world = see_world(tmp_path)
    session = compilediag.start()
    run()
    for name in modules:  # In the order of their imports.
        importlib.reload(sys.modules[name])
    assert compilediag.current() is session and session.state == "watching"
    run()
    assert compilediag.stop() is session
    assert session.state == "stopped"
    assert 3 <= len(session.recompiles) <= 6 <= len(session.recompiles) + count_losses(session)
    assert list_left(world) == [] and compilediag.stop() is None
    with compilediag.watch() as later:
        run()
    assert len(later.recompiles) == 3 and list_left(world) == []


@pytest.mark.swallows
@pytest.mark.parametrize("stride", [5, pytest.param(1, marks=pytest.mark.long("reloads 200 modules"))])
def test_a_reload_of_any_module_leaves_a_watch_that_can_be_ended(tmp_path, modules, stride):
    """Then classes of the module exist twice, so that rows may be lost. No hook is."""
    world = see_world(tmp_path)
    left = {}
    for name in modules[::stride]:
        state = dict(vars(sys.modules[name]))
        session = compilediag.start(detail="lean")
        importlib.reload(sys.modules[name])
        ended = compilediag.stop()
        vars(sys.modules[name]).clear()
        vars(sys.modules[name]).update(state)
        if ended is not session or session.state == "watching" or list_left(world):
            left[name] = session.state, list_left(world)
            compilediag.stop()
    assert left == {} and len(modules) > 100
