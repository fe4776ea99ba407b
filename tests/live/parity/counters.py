"""torch's counters, each with what the tables say of it: (group, name) -> function of a session."""

from __future__ import annotations

from collections.abc import Callable

import compilediag as cd

from . import code_counters, tuning_counters

Told = Callable[[cd.Session], int]


def lookups(cache: str, *outcomes: str, tier: str = "local") -> Told:
    """The rows of `cache_lookups` of a cache with one of these outcomes."""

    def told(session: cd.Session) -> int:
        frame = session.cache_lookups
        return int(((frame["cache"] == cache) & (frame["tier"] == tier) & frame["outcome"].isin(outcomes)).sum())

    return told


def cudagraphs(column: str, *actions: str) -> Told:
    """The sum of a column of `cudagraphs` over the rows with one of these actions."""

    def told(session: cd.Session) -> int:
        frame = session.cudagraphs
        return int(frame.loc[frame["action"].isin(actions), column].fillna(0).astype("int64").sum())

    return told


COUNTERS: dict[tuple[str, str], Told] = {
    ("stats", "unique_graphs"): lambda s: int(
        ((s.compiles["trigger"] == "dynamo") & (s.compiles["outcome"] == "ok")).sum()
    ),
    ("inductor", "fxgraph_cache_hit"): lookups("fx_graph", "hit"),
    ("inductor", "fxgraph_cache_miss"): lookups("fx_graph", "miss", "guard_miss"),
    ("inductor", "fxgraph_cache_bypass"): lookups("fx_graph", "bypass"),
    ("aot_autograd", "autograd_cache_hit"): lookups("aot_autograd", "hit"),
    ("aot_autograd", "autograd_cache_miss"): lookups("aot_autograd", "miss", "guard_miss"),
    ("aot_autograd", "autograd_cache_guard_miss"): lookups("aot_autograd", "guard_miss"),
    ("aot_autograd", "autograd_cache_bypass"): lookups("aot_autograd", "bypass"),
    ("aot_autograd", "autograd_cache_saved"): lookups("aot_autograd", "saved"),
    ("inductor", "cudagraph_skips"): cudagraphs("counted", "skip", "limit"),
    ("inductor", "cudagraph_partitions"): cudagraphs("partitions", "partition"),
    ("inductor", "cudagraph_recorded_non_static_inputs"): cudagraphs("copied_inputs", "record", "rerecord", "failed"),
    **code_counters.COUNTERS,
    **tuning_counters.COUNTERS,
}
