"""Find what kept caches from helping: settings in the key, lost entries, bypasses, failing servers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from ...events import CacheLookup, Compile, Rows
from ...formatting import format_amount, format_first_line, format_line, format_names, format_seconds, format_times
from ..evidence import find_first, find_shared_place, get_ids, get_place, group_by, is_timed, sum_seconds
from ..finding import Finding, get_severity
from .cache_bypasses import describe_bypass_change, find_bypass_change
from .cache_misses import ADVICE, LOST_ADVICE, get_component
from .graph_break_rules import MANY_BREAKS

#: Caches of generated code. Whether such code is compiled has findings of its own: a skipped frame, a failed build.
CODE_CACHES = frozenset({"dynamo_code", "py_code", "cpp_code", "cuda_code", "triton_code", "triton_template"})
#: Components of a key that are configuration or the machine, not the program: a miss that only they explain is
#: avoidable.
SETTINGS = ("inductor_config", "autograd_config", "cpp_runtime_thread_count", "torch_version", "system_info")
#: Cache, tier and first line of the reason.
Ending = tuple[str | None, str | None, str]


def find_cache_problems(data: Rows) -> list[Finding]:
    """A miss by itself is no finding: a first compile misses."""
    rows = [row for row in data.rows(CacheLookup) if row.cache not in CODE_CACHES]
    missed = [row for row in rows if row.outcome == "miss"]
    costs, compiles = _map_costs(rows), _sum_backend_seconds(data.rows(Compile))
    return [
        *(_report_settings(names, group, costs) for names, group in _group_by_settings(missed).items()),
        *(_report_lost(cache, group, costs) for cache, group in _group_lost(missed).items()),
        *(_report_bypass(ending, group, compiles) for ending, group in _group_by_reason(rows, "bypass").items()),
        *(_report_failure(ending, group) for ending, group in _group_by_reason(rows, "failed").items()),
    ]


def _map_costs(rows: Iterable[CacheLookup]) -> dict[str | None, float]:
    """Key -> seconds of the compile whose result was then stored under it."""
    return {row.key: row.taken_s for row in rows if row.outcome == "saved" and is_timed(row.taken_s)}


def _sum_costs(rows: Iterable[CacheLookup], costs: dict[str | None, float]) -> float:
    """Seconds of the compiles behind these misses. AOTAutogradCache's include FxGraphCache's, so the larger sum of a
    compile counts.
    """
    compiles: dict[object, dict[str | None, float]] = defaultdict(lambda: defaultdict(float))
    for row in rows:
        compiles[row.compile_key][row.cache] += costs.get(row.key, 0.0)
    return sum_seconds(max(caches.values()) for caches in compiles.values())


def _group_by_settings(missed: Iterable[CacheLookup]) -> dict[tuple[str, ...], list[CacheLookup]]:
    """Names of the settings that alone differ -> the misses that they explain."""
    groups = group_by(missed, lambda row: tuple(dict.fromkeys(map(get_component, row.key_diff or ()))))
    return {names: rows for names, rows in groups.items() if names and all(n.startswith(SETTINGS) for n in names)}


def _report_settings(names: tuple[str, ...], rows: list[CacheLookup], costs: dict[str | None, float]) -> Finding:
    lost = _sum_costs(rows, costs)
    differences = list(dict.fromkeys(text for row in rows for text in row.key_diff or ()))
    changes = [text.partition(": ")[2] for text in differences if get_component(text) == names[0]]
    what = f" ({format_line(changes[0], 80)})" if len(names) == 1 else ""
    cost = f" cost {format_seconds(lost)}" if lost else ""
    earlier = find_first(row.nearest_session for row in rows)
    return Finding(
        rule="cache_settings",
        severity=get_severity(lost, 1, "medium"),
        title=f"{format_amount(len(rows), 'cache miss', 'cache misses')}{cost}: only {format_names(names)}{what} "
        f"{'differs' if len(names) == 1 else 'differ'} from the nearest earlier key",
        seconds_lost=lost,
        evidence=get_ids(rows),
        suggestion=_advise(names) + (f" The earlier key is from {format_line(earlier)}." if earlier else ""),
        count=len(rows),
        details=tuple(format_line(text, 200) for text in differences[:64]),
        **find_shared_place(map(get_place, rows)),
    )


def _advise(names: tuple[str, ...]) -> str:
    return next((text for head, text in ADVICE if any(name.startswith(head) for name in names)), "")


def _group_lost(missed: Iterable[CacheLookup]) -> dict[str | None, list[CacheLookup]]:
    """Cache -> the misses of a key that was seen before."""
    return group_by((r for r in missed if r.key is not None and r.nearest_key == r.key), lambda row: row.cache)


def _report_lost(cache: str | None, rows: list[CacheLookup], costs: dict[str | None, float]) -> Finding:
    lost = _sum_costs(rows, costs)
    cost = f" cost {format_seconds(lost)}" if lost else ""
    return Finding(
        rule="cache_entry_gone",
        severity=get_severity(lost, 1, "medium"),
        title=f"{format_amount(len(rows), 'miss', 'misses')} in {_name(cache)}{cost}: same key as before, but "
        "its entry was deleted or never saved",
        seconds_lost=lost,
        evidence=get_ids(rows),
        suggestion=LOST_ADVICE,
        count=len(rows),
        **find_shared_place(map(get_place, rows)),
    )


def _group_by_reason(rows: Iterable[CacheLookup], outcome: str) -> dict[Ending, list[CacheLookup]]:
    """The lookups and stores that ended with `outcome`, by cache, tier and reason."""
    ended = [row for row in rows if row.outcome == outcome]
    return group_by(ended, lambda row: (row.cache, row.tier, format_first_line(row.reason or "")))


def _report_bypass(ending: Ending, rows: list[CacheLookup], compiles: dict[str, float]) -> Finding:
    cache, _, reason = ending
    again = sum_seconds(compiles.get(key) for key in {row.compile_key for row in rows if row.compile_key is not None})
    paid = f", so {format_seconds(again)} of compile time" if again else ", so its compile time"
    usual = f"Graphs that bypass the cache are compiled again in every process{paid} is paid again in the next one."
    change = find_bypass_change(find_first(row.reason for row in rows) or "")
    return Finding(
        rule="cache_bypass",
        severity="medium" if len(rows) >= MANY_BREAKS else "low",
        title=f"{_name(cache)} was bypassed {format_times(len(rows))}: {reason or 'no reason given'}",
        seconds_lost=0.0,
        evidence=get_ids(rows),
        suggestion=f"{describe_bypass_change(change)} {usual}".strip(),
        fix=change.settings if change else None,
        changes=(change,) if change else (),
        count=len(rows),
        details=(reason,) if reason else (),
        **find_shared_place(map(get_place, rows)),
    )


def _sum_backend_seconds(compiles: Iterable[Compile]) -> dict[str, float]:
    """Compile key -> s below Dynamo: what a cache would have saved."""
    seconds: dict[str, float] = defaultdict(float)
    for row in compiles:
        if row.compile_key is not None and is_timed(row.aot_s):
            seconds[row.compile_key] += row.aot_s
    return dict(seconds)


_REMOTE = (
    "Check that the server can be reached (for Redis: TORCHINDUCTOR_REDIS_HOST and TORCHINDUCTOR_REDIS_PORT), or turn "
    "the remote cache off. torch still compiles, but does not share the results with other machines."
)
_LOCAL = (
    "Check that the cache directory (TORCHINDUCTOR_CACHE_DIR) can be written and its disk is not full, and delete "
    "entries that cannot be read. torch still compiles."
)


def _report_failure(ending: Ending, rows: list[CacheLookup]) -> Finding:
    cache, tier, reason = ending
    is_remote = tier == "remote"
    waited = sum_seconds(row.duration_s for row in rows)
    why = _explain_failure(reason, rows)
    return Finding(
        rule="cache_failed",
        severity=get_severity(waited, len(rows), "medium"),
        title=f"{_name(cache)}{' (remote)' if is_remote else ''} failed {format_times(len(rows))}: "
        f"{why or 'no reason given'}",
        seconds_lost=waited,
        evidence=get_ids(rows),
        suggestion=_REMOTE if is_remote else _LOCAL,
        count=len(rows),
        details=(why,) if why else (),
        **find_shared_place(map(get_place, rows)),
    )


def _explain_failure(reason: str, rows: list[CacheLookup]) -> str:
    """The class of the exception and the reason."""
    error = find_first(row.exception_type for row in rows)
    if not error or reason.startswith(error):
        return reason
    return f"{format_line(error, 60)}: {reason}".rstrip(": ")


def _name(cache: str | None) -> str:
    return format_line(cache or "a cache", 40)
