"""torch's counters of compiled code and its packages, of kernels and of bundles of them, with what the tables say."""

from __future__ import annotations

from collections.abc import Callable

import compilediag as cd

Told = Callable[[cd.Session], int]


def rows(cache: str, tier: str, *outcomes: str, action: str = "look_up", column: str | None = None) -> Told:
    """How often something was asked of a cache with one of these outcomes, or the sum of a column over these rows."""

    def count(session: cd.Session) -> int:
        frame = session.cache_lookups
        asked = frame[(frame["cache"] == cache) & (frame["tier"] == tier) & (frame["action"] == action)]
        found = asked[asked["outcome"].isin(outcomes)]
        return len(found) if column is None else int(found[column].sum())

    return count


COUNTERS: dict[tuple[str, str], Told] = {
    ("dynamo_cache", "dynamo_cache_hit"): rows("dynamo_code", "local", "hit"),
    ("dynamo_cache", "dynamo_cache_miss"): rows("dynamo_code", "local", "miss"),
    ("dynamo_cache", "dynamo_cache_error"): rows("dynamo_code", "local", "failed"),
    # torch counts every request for a kernel as a miss, and those that find one as hits, too.
    ("inductor", "async_compile_cache_miss"): rows("triton_code", "memory", "hit", "miss", "failed"),
    ("inductor", "async_compile_cache_hit"): rows("triton_code", "memory", "hit"),
    ("inductor", "triton_bundler_save_kernel"): rows("triton_bundle", "local", "saved", action="store", column="files"),
    ("inductor", "triton_bundler_read_and_emit_kernel"): rows(
        "triton_bundle", "local", "written", action="write", column="files"
    ),
    ("inductor", "triton_bundler_save_static_autotuner"): rows("triton_bundle", "memory", "saved", action="store"),
    ("inductor", "triton_bundler_load_static_autotuner"): rows("triton_bundle", "memory", "hit", column="kernels"),
}
