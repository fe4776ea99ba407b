"""The wall clock is stepped while something compiles: the durations stay durations, and the rows stay in order."""

import time

import pytest
import torch

import compilediag as cd
from compilediag.events import BY_TABLE
from tests.live import programs

HOUR_NS = 3_600_000_000_000
#: No machine takes as long for these programs, and every step is longer.
LONGEST_S = 1800


class WallClock:
    """The wall clock of this process, which can be stepped. torch, which measures with it, reads this one."""

    def __init__(self, monkeypatch):
        self.ahead_ns, self.true = 0, time.time_ns
        monkeypatch.setattr(time, "time_ns", lambda: self.true() + self.ahead_ns)
        monkeypatch.setattr(time, "time", lambda: (self.true() + self.ahead_ns) / 1e9)

    def step(self, ns):
        self.ahead_ns += ns


@pytest.fixture
def wall(monkeypatch):
    return WallClock(monkeypatch)


def run(backend, between=lambda: None):
    """Compile with a graph break, and recompile three times."""

    def function(x, n):
        y = x.sin() * n
        torch._dynamo.graph_break()
        return y.relu() + n

    torch._dynamo.reset()
    compiled = torch.compile(programs.renamed(function, "stepped"), backend=backend)
    for n in (1, 2, 3, 2.5):
        compiled(torch.ones(4), n)
        between()


def find_wrong_durations(session):
    """(table, column, value) of all durations that are negative or contain a step."""
    wrong = []
    for table in [*BY_TABLE, "events"]:
        rows = session.table(table)
        for column in [name for name in rows.columns if name.endswith("_s") or name == "seconds"]:
            values = rows[column].dropna()
            wrong += [(table, column, value) for value in values if not 0 <= value < LONGEST_S]
    return wrong


def count(session):
    return [len(session.compiles), len(session.recompiles), len(session.graph_breaks)]


@pytest.fixture(scope="module")
def expected():
    with cd.watch() as session:
        run("eager")
    return count(session)


@pytest.mark.parametrize("step_ns", [HOUR_NS, -HOUR_NS], ids=["forward", "backward"])
@pytest.mark.parametrize("where", ["in a compile", "between compiles"])
@pytest.mark.parametrize("detail", ["lean", "full"])
def test_a_step_of_the_wall_clock_is_in_no_duration(wall, expected, step_ns, where, detail):
    def backend(graph, inputs):
        if where == "in a compile":
            wall.step(step_ns)
        return graph.forward

    with cd.watch(detail=detail) as session:
        run(backend, (lambda: wall.step(step_ns)) if where == "between compiles" else lambda: None)
    assert count(session) == expected
    assert find_wrong_durations(session) == []
    times = session.events["time"]
    assert (times.max() - times.min()).total_seconds() < LONGEST_S
    assert session.compiles["duration_s"].notna().all()
    assert 0 <= session.plan().seconds < LONGEST_S


@pytest.mark.long("compiles with Inductor from empty caches")
def test_a_step_while_inductor_compiles_is_in_no_duration(wall, fresh_inductor_cache):
    inner = torch._inductor.compile

    def backend(graph, inputs):
        wall.step(HOUR_NS)
        compiled = inner(graph, inputs)
        wall.step(-2 * HOUR_NS)
        return compiled

    with cd.watch() as session:
        run(backend)
    assert find_wrong_durations(session) == []
    assert len(session.cache_lookups) and session.compiles["duration_s"].notna().all()
