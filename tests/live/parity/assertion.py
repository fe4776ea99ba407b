"""The one assertion of the parity suite: what the tables say is what torch counted, number for number.

A scenario is a few lines that drive the real compiler. `observed(run)` runs it under a watch with torch's
counters at zero and gives what both sides say; `assert_parity` compares every counter of `COUNTERS`, whether or
not the scenario was written for it, and the compiles against torch's own CompilationMetrics.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch._dynamo import utils
from torch._inductor.remote_cache import cache_stats

import compilediag as cd

from .cache_counters import METRICS, STATS, counted_again
from .counters import COUNTERS

#: (test, what torch counted) of every scenario that was in parity, for `tests/scenarios.py`.
COMPARED: list[tuple[str, dict[str, int]]] = []


@dataclass(frozen=True)
class Observed:
    """One scenario: the session, torch's counters as {group: {name: number}}, its metrics, what `run` gave.

    `stats` are those of torch's caches on disk and servers, as {cache: {"hit", "miss", "put", "exception": number}}.
    """

    session: cd.Session
    counters: dict[str, dict[str, int]]
    metrics: list[Any]
    result: Any
    stats: dict[str, dict[str, int]]


def observed(run: Callable[[], Any], detail: str = "full") -> Observed:
    """Run a scenario once. torch keeps its last 64 metrics only, so a scenario has fewer compiles than that."""
    utils.counters.clear()
    utils.clear_compilation_metrics()
    cache_stats._stats.clear()
    with cd.watch(detail=detail) as session:
        result = run()
    counters = {group: dict(names) for group, names in utils.counters.items()}
    stats = {name: dataclasses.asdict(numbers) for name, numbers in cache_stats._stats.items()}
    return Observed(session, counters, list(utils.get_compilation_metrics()), result, stats)


def torch_says(seen: Observed) -> dict[tuple[str, str], int]:
    """Every number of torch's that the tables know of. torch 2.11 has no numbers of the caches on disk."""
    return {
        **{(group, name): seen.counters.get(group, {}).get(name, 0) for group, name in COUNTERS},
        **{("metrics", name): sum(getattr(m, name) or 0 for m in seen.metrics) for name in METRICS},
        **{("cache_stats", f"{c} {n}"): count for c in STATS for n, count in seen.stats.get(c, {}).items()},
    }


def tables_say(seen: Observed) -> dict[tuple[str, str], int]:
    """The same numbers from the session's tables.

    A graph from a cache raises torch's counters as if it were compiled once more; the tables tell what was done, and of
    the hit what torch counts again. Partitions for CUDA graphs are recorded for each graph, cached or not.
    """
    again = {("inductor", name): n for name, n in counted_again(seen.session).items() if name != "cudagraph_partitions"}
    return {
        **{name: count(seen.session) + again.get(name, 0) for name, count in COUNTERS.items()},
        **{("metrics", name): count(seen.session) for name, count in METRICS.items()},
        **{
            ("cache_stats", f"{c} {n}"): count
            for c, details in STATS.items()
            if c in seen.stats
            for n, count in details(seen.session).items()
        },
    }


def assert_parity(seen: Observed) -> None:
    """Every number of torch's that the tables know of, and the number of compiles, are the same in both.

    On a GPU torch also keeps metrics of what it timed at run time, such as a capture; those are no compiles.
    """
    torchs, ours = torch_says(seen), tables_say(seen)
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
