"""torch's counters of its caches, each with what `cache_lookups` says of it.

`COUNTERS` is of `torch._dynamo.utils.counters`, `METRICS` of CompilationMetrics summed over all compiles, `STATS` of
`torch._inductor.remote_cache.cache_stats`, which has four numbers a cache.
"""

from __future__ import annotations

from collections import Counter

import pandas as pd

import compilediag as cd
from compilediag.decode.records.cache_records import LOCAL_OFF, NOT_PICKLED, NOT_SEARCHED, NOT_WRITTEN


def rows(session: cd.Session, *caches: str, **equal: str | tuple[str, ...]) -> pd.DataFrame:
    """The rows of `cache_lookups` of these caches whose columns have one of the given values."""
    frame = session.cache_lookups
    wanted = frame["cache"].isin(caches)
    for name, values in equal.items():
        wanted &= frame[name].isin((values,) if isinstance(values, str) else values)
    return frame[wanted]


def look_ups(session, cache, *outcomes, tier=("local", "remote")):
    return len(rows(session, cache, tier=tier, action="look_up", outcome=outcomes))


def stored(session, cache, outcome, reason=""):
    found = rows(session, cache, action="store", outcome=outcome)
    return int(found["reason"].fillna("").str.startswith(reason).sum())


def misses(session, cache):
    """Look-ups that found nothing in any tier. What only the remote tier had is a miss of the local one, or
    "disabled" if that is off.
    """
    not_local = look_ups(session, cache, "miss", "guard_miss", tier="local")
    off = int(rows(session, cache, tier="local", action="look_up", outcome="disabled")["key"].notna().sum())
    return not_local + off - look_ups(session, cache, "hit", tier="remote")


def counted_again(session):
    """What torch counted once more of what the compiles of found entries had counted, as {name: number}."""
    found = session.cache_lookups["counted_again"].dropna()
    return sum((Counter(counts) for counts in found), Counter())


def write_errors(session):
    """One a store: torch does not go on to the server when it can't write to the disk."""
    local = stored(session, "fx_graph", "failed", NOT_WRITTEN)
    return local + stored(session, "fx_graph", "failed", "the put raised")


COUNTERS = {
    ("inductor", "fxgraph_cache_hit"): lambda s: look_ups(s, "fx_graph", "hit"),
    ("inductor", "fxgraph_cache_miss"): lambda s: misses(s, "fx_graph"),
    ("inductor", "fxgraph_cache_bypass"): lambda s: look_ups(s, "fx_graph", "bypass"),
    ("inductor", "fxgraph_cache_pickle_error"): lambda s: stored(s, "fx_graph", "failed", NOT_PICKLED),
    ("inductor", "fxgraph_cache_write_error"): write_errors,
    ("inductor", "fxgraph_lookup_write_file"): lambda s: len(rows(s, "fx_graph", action="write")),
    ("aot_autograd", "autograd_cache_hit"): lambda s: look_ups(s, "aot_autograd", "hit"),
    ("aot_autograd", "autograd_cache_miss"): lambda s: misses(s, "aot_autograd"),
    ("aot_autograd", "autograd_cache_guard_miss"): lambda s: look_ups(s, "aot_autograd", "guard_miss", tier="local"),
    ("aot_autograd", "autograd_cache_bypass"): lambda s: len(rows(s, "aot_autograd", outcome="bypass")),
    ("aot_autograd", "autograd_cache_saved"): lambda s: len(
        rows(s, "aot_autograd", tier="local", action="store", outcome="saved")
    ),
}


def found(session, cache, tier):
    """Look-ups of a tier that had an entry whose guards held, whether or not it could be used then."""
    frame = rows(session, cache, tier=tier, action="look_up", outcome=("hit", "miss", "bypass"))
    return int(frame["bytes"].notna().sum())


def not_found(session, cache, tier):
    frame = rows(session, cache, tier=tier, action="look_up")
    frame = frame[frame["key"].notna()]
    if tier == "local":
        frame = frame[~frame["reason"].fillna("").str.startswith((LOCAL_OFF, NOT_SEARCHED))]
        return int(frame["bytes"].isna().sum())
    return int((frame["outcome"] != "hit").sum())


METRICS = {
    f"{name}_{tier}_cache_{count}_count": lambda s, rows=rows, cache=cache, tier=tier: rows(s, cache, tier)
    for name, cache in (("inductor_fx", "fx_graph"), ("aotautograd", "aot_autograd"))
    for tier in ("local", "remote")
    for count, rows in (("hit", found), ("miss", not_found))
}


def local_stats(session, cache):
    return {
        "hit": found(session, cache, "local"),
        "miss": not_found(session, cache, "local"),
        "put": len(rows(session, cache, tier="local", action="store", outcome="saved")),
        "exception": 0,
    }


def remote_stats(session, *caches, backend=False):
    """torch counts a get or put that Redis did not answer as a miss or a put, if it caught the exception itself."""
    asked = rows(session, *caches, tier="remote")
    asked = asked[asked["key"].notna()]
    raised = asked["reason"].fillna("").str.match("the (get|put) raised") & ~(backend & asked["bytes"].notna())
    puts = asked["action"] == "store"
    return {
        "hit": int((~raised & ~puts & asked["bytes"].notna()).sum()),
        "miss": int((~raised & ~puts & asked["bytes"].isna()).sum()),
        "put": int((~raised & puts).sum()),
        "exception": int(raised.sum()),
    }


REMOTE_CACHES = ("fx_graph", "aot_autograd", "autotune", "pgo")
STATS = {
    "LocalFxGraphCache": lambda s: local_stats(s, "fx_graph"),
    "LocalAOTAutogradCache": lambda s: local_stats(s, "aot_autograd"),
    "RemoteFxGraphCache": lambda s: remote_stats(s, "fx_graph"),
    "RemoteAOTAutogradCache": lambda s: remote_stats(s, "aot_autograd"),
    "RemoteAutotuneCache": lambda s: remote_stats(s, "autotune"),
    "RemoteDynamoPGOCache": lambda s: remote_stats(s, "pgo"),
    "backend:RedisRemoteCacheBackend": lambda s: remote_stats(s, *REMOTE_CACHES, backend=True),
}
