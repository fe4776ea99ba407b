"""The one assertion of the parity suite: what the tables say is what torch counted, number for number.

A scenario is a few lines that drive the real compiler. `observed(run)` runs it under a watch with torch's
counters at zero and gives what both sides say; `assert_parity` compares every counter of `COUNTERS`, whether or
not the scenario was written for it, and the compiles against torch's own CompilationMetrics.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch._dynamo import utils

import compilediag as cd

from .counters import COUNTERS

#: (test, what torch counted of `COUNTERS`) of every scenario that was in parity, for `tests/scenarios.py`.
COMPARED: list[tuple[str, dict[str, int]]] = []


@dataclass(frozen=True)
class Observed:
    """One scenario: the session, torch's counters as {group: {name: number}}, its metrics, what `run` gave."""

    session: cd.Session
    counters: dict[str, dict[str, int]]
    metrics: list[Any]
    result: Any


def observed(run: Callable[[], Any], detail: str = "full") -> Observed:
    """Run a scenario once. torch keeps its last 64 metrics only, so a scenario has fewer compiles than that."""
    utils.counters.clear()
    utils.clear_compilation_metrics()
    with cd.watch(detail=detail) as session:
        result = run()
    counters = {group: dict(names) for group, names in utils.counters.items()}
    return Observed(session, counters, list(utils.get_compilation_metrics()), result)


def assert_parity(seen: Observed) -> None:
    """Every counter that the tables know of, and the number of compiles, equal torch's.

    On a GPU torch also keeps metrics of what it timed at run time, such as a capture; those are no compiles.
    """
    torchs = {(g, n): seen.counters.get(g, {}).get(n, 0) for g, n in COUNTERS}
    ours = {name: told(seen.session) for name, told in COUNTERS.items()}
    differing = {name: {"torch": torchs[name], "tables": ours[name]} for name in ours if torchs[name] != ours[name]}
    assert not differing, differing
    assert len(seen.session.compiles) == len([m for m in seen.metrics if not m.is_runtime]) <= len(seen.metrics) < 64
    broken = seen.session.sources.query("status == 'failed' or dropped > 0")
    assert broken.empty, broken
    test = os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" ")[0]
    COMPARED.append((test, {name: count for (_, name), count in torchs.items() if count}))


def in_parity(run: Callable[[], Any], detail: str = "full") -> Observed:
    """Run a scenario and compare; gives it for what else a test wants to see."""
    seen = observed(run, detail)
    assert_parity(seen)
    return seen
