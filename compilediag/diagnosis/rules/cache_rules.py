"""What kept caches from helping: keys that a setting changed, entries that are gone, bypasses, servers that fail."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from .. import wording
from ..finding import Finding, severity_of
from ..rows import Row, compile_key, first, ids, is_timed, place_in, place_of, rows_of, seconds
from .cache_misses import ADVICE, GONE
from .graph_break_rules import MANY_BREAKS

COLUMNS = (
    *("function", "file", "line", "cache", "tier", "outcome", "key", "reason", "exception_type", "taken_s"),
    *("nearest_key", "nearest_session", "key_diff", "duration_s"),
)
#: Where code is kept, which is compiled or not for reasons that have findings of their own: a skipped frame, a build
#: that failed.
CODE = frozenset({"dynamo_code", "py_code", "cpp_code", "cuda_code", "triton_code", "triton_template"})
#: Parts of a key that are configuration or the machine, not the program: a miss that only they explain is avoidable.
SETTINGS = ("inductor_config", "autograd_config", "cpp_runtime_thread_count", "torch_version", "system_info")
#: What torch's reason for a bypass begins with -> what to do about it. Others are told as they are.
BYPASSES = (
    ("Cannot cache a graph with freezing", "That is expected under freezing, which builds the weights into the graph."),
    ("FX graph cache is not enabled", "AOTAutogradCache needs it: torch._inductor.config.fx_graph_cache = True."),
    ("Compiled autograd is enabled", "Graphs of compiled autograd are not cached; compile without it to have caching."),
)


def cache_findings(tables: Any) -> list[Finding]:
    """A miss by itself is no finding: a first compile misses."""
    rows = [row for row in rows_of(tables, "cache_lookups", COLUMNS) if row["cache"] not in CODE]
    missed = [row for row in rows if row["outcome"] == "miss"]
    cost = _costs(rows)
    return [
        *(_settings(names, group, cost) for names, group in _by_settings(missed).items()),
        *(_gone(cache, group, cost) for cache, group in _by_gone(missed).items()),
        *(_bypass(*key, group) for key, group in _by(rows, "bypass").items()),
        *(_failed(*key, group) for key, group in _by(rows, "failed").items()),
    ]


def _costs(rows: Iterable[Row]) -> dict[Any, float]:
    """Key -> seconds of the compile whose result was then stored under it."""
    return {r["key"]: r["taken_s"] for r in rows if r["outcome"] == "saved" and is_timed(r["taken_s"])}


def _lost(rows: Iterable[Row], cost: dict[Any, float]) -> float:
    """Seconds of the compiles behind these misses. AOTAutogradCache's hold FxGraphCache's: of a compile the larger
    sum counts.
    """
    compiles: dict[Any, dict[Any, float]] = defaultdict(lambda: defaultdict(float))
    for row in rows:
        place = compile_key(row)
        compiles[place][row["cache"]] += cost.get(row["key"], 0.0)
    return seconds(max(caches.values()) for caches in compiles.values())


def _by_settings(missed: Iterable[Row]) -> dict[tuple[str, ...], list[Row]]:
    """Names of the settings that alone differ -> the misses that they explain."""
    groups: dict[tuple[str, ...], list[Row]] = defaultdict(list)
    for row in missed:
        names = tuple(dict.fromkeys(text.partition(": ")[0] for text in row["key_diff"] or ()))
        if names and all(name.startswith(SETTINGS) for name in names):
            groups[names].append(row)
    return groups


def _settings(names: tuple[str, ...], rows: list[Row], cost: dict[Any, float]) -> Finding:
    lost = _lost(rows, cost)
    texts = list(dict.fromkeys(text for row in rows for text in row["key_diff"]))
    changes = [text.partition(": ")[2] for text in texts if text.startswith(names[0])]
    what = f" ({wording.one_line(changes[0], 80)})" if len(names) == 1 else ""
    spent = f", {wording.spent(lost)} compiled again" if lost else ""
    earlier = first(rows, "nearest_session")
    return Finding(
        rule="cache_settings",
        severity=severity_of(lost, 1, "medium"),
        title=f"{wording.counted(len(rows), 'cache miss', 'cache misses')}{spent}: the key differs from the nearest "
        f"earlier one only in {wording.listed(names)}{what}",
        seconds_lost=lost,
        evidence=ids(rows),
        suggestion=_advice(names) + (f" The earlier key was seen {wording.one_line(earlier)}." if earlier else ""),
        count=len(rows),
        details=tuple(wording.one_line(text, 200) for text in texts[:64]),
        **place_of(map(place_in, rows)),
    )


def _advice(names: tuple[str, ...]) -> str:
    return next((text for head, text in ADVICE if any(name.startswith(head) for name in names)), "")


def _by_gone(missed: Iterable[Row]) -> dict[str, list[Row]]:
    groups: dict[str, list[Row]] = defaultdict(list)
    for row in missed:
        if row["key"] is not None and row["nearest_key"] == row["key"]:
            groups[row["cache"]].append(row)
    return groups


def _gone(cache: str | None, rows: list[Row], cost: dict[Any, float]) -> Finding:
    lost = _lost(rows, cost)
    return Finding(
        rule="cache_entry_gone",
        severity=severity_of(lost, 1, "medium"),
        title=f"{wording.counted(len(rows), 'miss', 'misses')} in {_name(cache)} of keys that were seen before: "
        "their entries are gone",
        seconds_lost=lost,
        evidence=ids(rows),
        suggestion=GONE,
        count=len(rows),
        **place_of(map(place_in, rows)),
    )


def _by(rows: Iterable[Row], outcome: str) -> dict[tuple[Any, ...], list[Row]]:
    """(cache, tier, first line of the reason) -> the look-ups and stores that ended so."""
    groups: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for row in rows:
        if row["outcome"] == outcome:
            groups[(row["cache"], row["tier"], wording.first_line(row["reason"] or ""))].append(row)
    return groups


def _bypass(cache: str | None, tier: str | None, reason: str, rows: list[Row]) -> Finding:
    usual = "What bypasses the cache is compiled again in every process, however often it ran before."
    special = next((text for head, text in BYPASSES if reason.startswith(head)), "")
    return Finding(
        rule="cache_bypass",
        severity="medium" if len(rows) >= MANY_BREAKS else "low",
        title=f"{_name(cache)} was bypassed {wording.times(len(rows))}: {reason or 'no reason was given'}",
        seconds_lost=0.0,
        evidence=ids(rows),
        suggestion=f"{usual} {special}".strip(),
        count=len(rows),
        details=(reason,) if reason else (),
        **place_of(map(place_in, rows)),
    )


def _failed(cache: str | None, tier: str | None, reason: str, rows: list[Row]) -> Finding:
    is_remote = tier == "remote"
    waited = seconds(row["duration_s"] for row in rows)
    kind = first(rows, "exception_type")
    why = reason if not kind or reason.startswith(kind) else f"{wording.one_line(kind, 60)}: {reason}".rstrip(": ")
    remote = (
        "torch compiles all the same, but shares nothing with other machines. Look whether the server can be reached "
        "(of Redis: TORCHINDUCTOR_REDIS_HOST and TORCHINDUCTOR_REDIS_PORT), or switch the remote cache off."
    )
    local = (
        "torch compiles all the same. Look at the cache directory (TORCHINDUCTOR_CACHE_DIR): whether it can be "
        "written, and the disk is not full; an entry that can't be read is best deleted."
    )
    return Finding(
        rule="cache_failed",
        severity=severity_of(waited, len(rows), "medium"),
        title=f"{_name(cache)}{' (remote)' if is_remote else ''} failed {wording.times(len(rows))}: "
        f"{why or 'no reason was given'}",
        seconds_lost=waited,
        evidence=ids(rows),
        suggestion=remote if is_remote else local,
        count=len(rows),
        details=(why,) if why else (),
        **place_of(map(place_in, rows)),
    )


def _name(cache: str | None) -> str:
    return wording.one_line(cache or "a cache", 40)
