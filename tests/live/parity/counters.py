"""torch's counters, each with what the tables say of it: (group, name) -> function of a session."""

from __future__ import annotations

from collections.abc import Callable

import compilediag as cd

from . import cache_counters, code_counters, tuning_counters

Told = Callable[[cd.Session], int]


def cudagraphs(column: str, *actions: str) -> Told:
    """The sum of a column of `cudagraphs` over the rows with one of these actions."""

    def count(session: cd.Session) -> int:
        frame = session.cudagraphs
        return int(frame.loc[frame["action"].isin(actions), column].fillna(0).astype("int64").sum())

    return count


COUNTERS: dict[tuple[str, str], Told] = {
    ("stats", "unique_graphs"): lambda s: int(
        (s.compiles["trigger"].isin(("dynamo", "compiled_autograd")) & (s.compiles["outcome"] == "ok")).sum()
    ),
    **cache_counters.COUNTERS,
    ("inductor", "cudagraph_skips"): cudagraphs("counted", "skip", "limit"),
    ("inductor", "cudagraph_partitions"): cudagraphs("partitions", "partition"),
    ("inductor", "cudagraph_recorded_non_static_inputs"): cudagraphs("copied_inputs", "record", "rerecord", "failed"),
    **code_counters.COUNTERS,
    **tuning_counters.COUNTERS,
}
