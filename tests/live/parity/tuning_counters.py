"""torch's counters of autotuning, each with what the tables say of it."""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd

import compilediag as cd

Told = Callable[[cd.Session], int]


def templates(outcome: str) -> Told:
    """Look-ups of the code of a template that may have been rendered before in this process."""
    return lambda session: len(session.cache_lookups.query(f"cache == 'triton_template' and outcome == '{outcome}'"))


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

    def count(session: cd.Session) -> int:
        frame = tuned(session, "triton_heuristics")
        frame = frame[frame["stage"] == stage]
        return int((frame["time_ms"].notna() | frame["fail_reason"].str.startswith("timed as infinite")).sum())

    return count


COUNTERS: dict[tuple[str, str], Told] = {
    ("inductor", "select_algorithm_autotune"): rounds,
    ("inductor", "select_algorithm_precompile"): waits,
    ("inductor", "select_algorithm_num_precompiles"): compiled_choices,
    ("inductor", "select_algorithm_num_precompilation_exceptions"): uncompiled_choices,
    ("inductor", "generated_module_cache_hit"): templates("hit"),
    ("inductor", "generated_module_cache_miss"): templates("miss"),
    ("inductor", "coordesc_tuning_bench"): descents("coordinate_descent"),
    ("inductor", "combo_autotune_bench"): descents("combo"),
}
