"""torch's counters, each with what the tables say of it: (group, name) -> function of a session."""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd

import compilediag as cd

from . import code_counters

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
}


def tuned(session: cd.Session, tuner: str) -> pd.DataFrame:
    """The rows of a tuner that tell of something that was done now."""
    frame = session.autotune
    return frame[(frame["tuner"] == tuner) & frame["from_cache"].isna()]


def rounds(session: cd.Session) -> int:
    """Calls of torch's `benchmark`, each with rows that share its time."""
    frame = tuned(session, "select_algorithm").query("benchmark_s.notna()")
    return len(frame[["pid", "run_id", "stage", "time"]].drop_duplicates())


def waits(session: cd.Session) -> int:
    return tuned(session, "select_algorithm").query("precompile_s.notna()")["run_id"].nunique()


def compiled_choices(session: cd.Session) -> int:
    frame = tuned(session, "select_algorithm").query("compile_s.notna()")
    return len(frame[["run_id", "choice"]].drop_duplicates())


def uncompiled_choices(session: cd.Session) -> int:
    """Choices whose compile raised; torch does not count one that it did not wait for any longer."""
    frame = tuned(session, "select_algorithm").query("stage == 'precompile'")
    return int((~frame["fail_reason"].str.startswith("TimeoutError: Precompilation timed out")).sum())


def descents(stage: str) -> Told:
    """Configurations of a stage that were timed; torch does not count one that raised."""

    def told(session: cd.Session) -> int:
        frame = tuned(session, "triton_heuristics")
        frame = frame[frame["stage"] == stage]
        return int((frame["time_ms"].notna() | frame["fail_reason"].str.startswith("timed as infinite")).sum())

    return told


COUNTERS |= {
    ("inductor", "select_algorithm_autotune"): rounds,
    ("inductor", "select_algorithm_precompile"): waits,
    ("inductor", "select_algorithm_num_precompiles"): compiled_choices,
    ("inductor", "select_algorithm_num_precompilation_exceptions"): uncompiled_choices,
    ("inductor", "generated_module_cache_hit"): lookups("triton_template", "hit", tier="memory"),
    ("inductor", "generated_module_cache_miss"): lookups("triton_template", "miss", tier="memory"),
    ("inductor", "coordesc_tuning_bench"): descents("coordinate_descent"),
    ("inductor", "combo_autotune_bench"): descents("combo"),
}
