"""The tests themselves: none asserts how long something takes. Figures with bounds are in benchmarks/."""

import ast
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[1]
CLOCKS = {"perf_counter", "perf_counter_ns", "monotonic", "monotonic_ns", "process_time", "thread_time", "time_ns"}


def is_clock(node):
    """True for a call such as `time.monotonic()`."""
    if not isinstance(node, ast.Call) or node.args:
        return False
    function = node.func
    if isinstance(function, ast.Attribute):
        return function.attr in CLOCKS or ast.unparse(function) == "time.time"
    return isinstance(function, ast.Name) and function.id in CLOCKS


def holds_any(node, names, test):
    """True if a part of `node` is one of these names, or passes the test."""
    return any(test(part) or (isinstance(part, ast.Name) and part.id in names) for part in ast.walk(node))


def duration_asserts(tree):
    """Line of each assert that compares a difference of two times."""
    moments, durations = set(), set()

    def is_duration(node):
        return isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub) and holds_any(node, moments, is_clock)

    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            names = {part.id for target in node.targets for part in ast.walk(target) if isinstance(part, ast.Name)}
            if holds_any(node.value, durations, is_duration):
                durations |= names
            elif is_clock(node.value):
                moments |= names
    asserted = [node for node in ast.walk(tree) if isinstance(node, ast.Assert)]
    compared = ((a.lineno, part) for a in asserted for part in ast.walk(a.test) if isinstance(part, ast.Compare))
    return [line for line, compare in compared if holds_any(compare, durations, is_duration)]


@pytest.mark.parametrize(
    ("code", "is_found"),
    [
        ("begin = time.perf_counter()\nwork()\nassert time.perf_counter() - begin < 0.1", True),
        ("begin = time.monotonic()\nwork()\ntook = time.monotonic() - begin\nassert took < 1", True),
        ("begin = time.time()\nrate = 100 / (time.time() - begin)\nassert 4_500 < rate", True),
        (
            "slowest = 0\nbegin = perf_counter()\nslowest = max(slowest, perf_counter() - begin)\nassert slowest < 2",
            True,
        ),
        ("end = time.monotonic() + 60\nwhile not done():\n    assert time.monotonic() < end", False),
        ("before = time.time()\nassert before <= session.begin <= time.time()", False),
        ("assert count - 1 == 3", False),
    ],
)
def test_asserts_on_durations_are_found(code, is_found):
    assert bool(duration_asserts(ast.parse(code))) is is_found


def test_no_test_asserts_how_long_something_takes():
    files = [file for file in sorted(TESTS.rglob("*.py")) if file.name != Path(__file__).name]
    found = {file.name: lines for file in files if (lines := duration_asserts(ast.parse(file.read_text())))}
    assert len(files) > 100 and found == {}
