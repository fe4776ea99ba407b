"""Caches of compiled graphs: why lookups missed, in words and in numbers, and what kept the caches from helping."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ...errors import CompilediagError
from ...events import CacheLookup, Compile, Rows, SourceStatus
from ...formatting import (
    escape_lines,
    format_amount,
    format_first_line,
    format_function,
    format_line,
    format_names,
    format_seconds,
)
from ..change import CodeChange, Settings, fix_code
from ..evidence import Evidence, find_first, get_place, group_by, is_timed, kept_of, sum_seconds
from ..finding import Finding
from ..rule import Rule, report
from .graph_breaks import MANY_BREAKS

MISSES = ("miss", "guard_miss")
#: What the caches are, in words.
NAMES = {"fx_graph": "Inductor's cache of compiled graphs", "aot_autograd": "AOTAutograd's cache"}
#: What the name of a component of a key begins with -> what a difference in it means. The first that fits counts.
ADVICE = (
    (
        "inductor_config",
        "Inductor's configuration differs: compile both with the same options to use the entry.",
    ),
    ("autograd_config", "AOTAutograd's configuration differs: compile both with the same settings to use the entry."),
    ("cpp_runtime_thread_count", "The number of threads differs: call torch.set_num_threads(n) with the same n."),
    (
        "torch_version",
        "Another build of torch made the earlier entry: the first compiles with a new build always miss.",
    ),
    ("system_info", "Another device or driver made the earlier entry."),
    ("example_inputs", "The inputs differ: torch keeps one entry for each combination of shapes, strides and dtypes."),
    ("constant[", "A constant in the code has another value: pass it as a tensor to keep it out of the key."),
    ("graph", "The traced code differs: a number in the code is part of the key; pass it as a tensor to keep it out."),
)
LOST_ADVICE = (
    "Check that the cache directory (TORCHINDUCTOR_CACHE_DIR) is the same, was not cleared, and can be written."
)


def explain_miss(data: Rows, event_id: int) -> str:
    """Explain why the lookup `event_id` missed, as plain text of a few lines.

    KeyError if `data` has no such lookup, CompilediagError if it was not a miss.
    """
    row = next((row for row in data.rows(CacheLookup) if row.event_id == event_id), None)
    if row is None:
        raise KeyError(f"no cache lookup has the event id {event_id}")
    if row.outcome not in MISSES:
        raise CompilediagError(f"event {event_id} is not a cache miss: {row.cache} {row.outcome}")
    where = format_function(*get_place(row))
    which = f", compile {row.compile_id}" if row.compile_id else ""
    cache = NAMES.get(row.cache or "", f"the cache {row.cache}")
    tier = f" ({row.tier})" if row.tier else ""
    first = f"{where}{which}: missed in {cache}{tier}, key {row.key or 'unknown'}"
    return escape_lines("\n".join([first, *list_miss_reasons(row, has_key_parts(data.rows(SourceStatus)))]))


def list_miss_reasons(row: CacheLookup, has_parts: bool) -> list[str]:
    """The lines on why a lookup missed; the differences are indented. `has_parts`: the parts of keys were recorded."""
    if row.outcome == "guard_miss":
        what = f": {row.guard}" if row.guard else "."
        return [f"An entry with this key exists, but its guards failed for these inputs{what}"]
    if row.nearest_key is None and row.cache not in NAMES:
        return [row.reason or "Keys of this cache are not compared with earlier ones."]
    lines = [f"torch's reason: {row.reason}"] if row.reason else []
    if row.nearest_key is None:
        if not has_parts:
            return [*lines, 'The parts of its key were not recorded. To compare keys, record with detail="full".']
        return [*lines, "This is the first lookup of this function: there is no earlier key to compare with."]
    if row.nearest_key == row.key:
        origin = f" The key is from {row.nearest_session}." if row.nearest_session else ""
        lost = f"Same key as before, but its entry was deleted or never saved.{origin}"
        return [*lines, lost, LOST_ADVICE]
    lines.append(f"Nearest earlier key, from {row.nearest_session or 'this session'}: {row.nearest_key}")
    if not row.key_diff:
        return [*lines, "The recorded parts of the two keys are equal."]
    return [*lines, "What differs:", *(f"  {text}" for text in row.key_diff), *filter(None, [_explain(row.key_diff)])]


def _explain(differences: Iterable[str]) -> str:
    """What the first kind of difference means; the others follow from it. "" if none is known."""
    return next((text for head, text in ADVICE if any(one.startswith(head) for one in differences)), "")


def get_component(difference: str) -> str:
    """The component of a key that a text of `CacheLookup.key_diff` is about: `name` of `name: old -> new`."""
    return difference.partition(": ")[0]


def has_key_parts(states: Iterable[SourceStatus]) -> bool:
    """True if the parts of keys were recorded."""
    return any(state.name == "keys" and state.status == "active" for state in states)


_CUSTOM_FUNCTIONS: Settings = {"autograd_cache_allow_custom_autograd_functions": True}
_CUSTOM_PASS = re.compile(r"Unsupported (?:(pre grad|post grad|joint) custom pass|(_\w+pass))")
_FUNCTION = re.compile(r"Function module: (\S+?),?\s+Function name: (\S+)")
#: What torch's reason begins with -> what to do about it.
_TEXTS = (
    ("Cannot cache a graph with freezing", "This is expected with freezing: the weights are part of the graph."),
    ("Compiled autograd is enabled", "Compile without compiled autograd to use the cache: its graphs are not cached."),
    (
        "SAC context_fn does not have a cache_hash",
        "Give the context_fn of the checkpointing an attribute cache_hash, a string that changes with what it does.",
    ),
    (
        "CustomRuntimeEstimator.uuid()",
        "Return a string that changes with what it does from the estimator's uuid().",
    ),
    ("CustomKnapsackSolver.uuid()", "Return a string that changes with what it does from the solver's uuid()."),
    (
        "activation_memory_budget_runtime_estimator is a raw callable",
        "Make the estimator a CustomRuntimeEstimator with a uuid().",
    ),
    ("activation_memory_budget_solver is a raw callable", "Make the solver a CustomKnapsackSolver with a uuid()."),
    ("mkldnn tensors unpickleable", "Keep mkldnn tensors out of the compiled function: convert them with to_dense()."),
    (
        "Failed to pickle cache key",
        "Keep objects that cannot be pickled (lambdas, locks, open files) out of the options of the compile.",
    ),
    ("AOTAutogradCache requires triton", "Install triton 3.2 or later."),
)


def find_bypass_change(reason: str) -> CodeChange | None:
    """The change after which torch caches the graph; None if the reason is not known."""
    if reason.startswith("FX graph cache is not enabled"):
        return CodeChange(text="Set torch._inductor.config.fx_graph_cache = True, which AOTAutogradCache needs.")
    if "autograd.function.FunctionCtx" in reason or "autograd_function_apply" in reason:
        return CodeChange(settings=_CUSTOM_FUNCTIONS)
    if _CUSTOM_PASS.match(reason):
        return CodeChange(
            text="Make the pass a torch._inductor.custom_graph_pass.CustomGraphPass whose uuid() returns a string that "
            "changes with what it does (torch._inductor.custom_graph_pass.get_hash_for_files((__file__,)))."
        )
    if reason.startswith("Unsupported call_function target") and (found := _FUNCTION.search(reason)):
        name = f"{found[1]}.{found[2]}"
        return CodeChange(
            text=f"If {name} depends on its arguments alone, "
            f'torch._inductor.config.unsafe_marked_cacheable_functions = {{"{name}": "version 1"}} allows it.'
        )
    return next((CodeChange(text=text) for head, text in _TEXTS if reason.startswith(head)), None)


def describe_bypass_change(change: CodeChange | None) -> str:
    """The change as a sentence; "" if there is none."""
    if change is None:
        return ""
    return f"Set {fix_code(change.settings)}." if change.settings else change.text


def advise_bypass(reason: str) -> str:
    """What to do about a bypass with torch's `reason`; "" if nothing special is known."""
    return describe_bypass_change(find_bypass_change(reason))


_SETTINGS_DIFFER = Rule(
    "cache_settings",
    title="{misses}{cost}: only {names}{change} {differ} from the nearest earlier key",
    action="{advice}",
    ceiling="medium",
    is_counted=False,
    docs="trouble",
)
_ENTRY_GONE = Rule(
    "cache_entry_gone",
    title="{misses} in {cache}{cost}: same key as before, but its entry was deleted or never saved",
    action=LOST_ADVICE,
    ceiling="medium",
    is_counted=False,
    docs="trouble",
)
_BYPASSED = Rule(
    "cache_bypass",
    title="{cache} was bypassed {times}: {reason}",
    action="{change}",
    why="Graphs that bypass the cache are compiled again in every process{paid} is spent again in the next one.",
    many=MANY_BREAKS,
    docs="trouble",
)
_FAILED = Rule(
    "cache_failed", title="{cache} failed {times}: {reason}", action="{advice}", ceiling="medium", docs="trouble"
)
_UNUSED = Rule(
    "artifacts_unused",
    title="{graphs}{cost}, although {artifacts} of load_cache_artifacts had been loaded: none was used",
    action="{advice}",
    is_counted=False,
    docs="trouble",
)
RULES = (_SETTINGS_DIFFER, _ENTRY_GONE, _BYPASSED, _FAILED, _UNUSED)
LOAD_EARLIER = (
    "Load the artifacts before the first compile, after TORCHINDUCTOR_CACHE_DIR is set, and keep the folder: torch "
    "writes them into it."
)
_SAVE_SAME = (
    "Save the artifacts where the build of torch, the device, the settings, the code and the shapes of the inputs are "
    'the same. Record that process too (detail="full"): `compilediag coldstart SAVED.cdiag THIS.cdiag` names the first '
    "difference."
)
_SAVE_AGAIN = (
    "Save the artifacts again with this build of torch (torch.compiler.save_cache_artifacts()), and check that the "
    "whole file was copied."
)

#: Caches of generated code. Whether such code is compiled has findings of its own: a skipped frame, a failed build.
CODE_CACHES = frozenset({"dynamo_code", "py_code", "cpp_code", "cuda_code", "triton_code", "triton_template"})
#: Components of a key that are configuration or the machine, not the program: a miss that only they explain is
#: avoidable.
SETTINGS = ("inductor_config", "autograd_config", "cpp_runtime_thread_count", "torch_version", "system_info")


def is_loaded_code(row: CacheLookup) -> bool:
    """True where torch found the compiled versions of a function on disk, so that none has to be traced."""
    return row.cache == "dynamo_code" and row.outcome == "hit" and row.tier != "memory"


@kept_of(CacheLookup)
def find_cache_problems(evidence: Evidence) -> list[Finding]:
    """A miss by itself is no finding: a first compile misses."""
    rows = [row for row in evidence.rows(CacheLookup) if row.cache not in CODE_CACHES]
    missed = [row for row in rows if row.outcome == "miss"]
    gone = group_by((r for r in missed if r.key is not None and r.nearest_key == r.key), lambda row: row.cache)
    # Key -> seconds of the compile whose result was then stored under it.
    costs = {row.key: row.taken_s for row in rows if row.outcome == "saved" and is_timed(row.taken_s)}
    # Compile key -> s below Dynamo: what a cache would have saved.
    compiles: dict[str, float] = defaultdict(float)
    for row in evidence.rows(Compile):
        if row.compile_key is not None and is_timed(row.aot_s):
            compiles[row.compile_key] += row.aot_s
    by_settings = group_by(missed, lambda row: tuple(dict.fromkeys(map(get_component, row.key_diff or ()))))
    found = []
    for names, group in by_settings.items():
        if names and all(name.startswith(SETTINGS) for name in names):
            found.append(_report_settings(names, group, costs))
    for cache, group in gone.items():
        lost = _sum_costs(group, costs)
        facts = {
            "misses": format_amount(len(group), "miss", "misses"),
            "cache": _name(cache),
            "cost": f" cost {format_seconds(lost)}" if lost else "",
        }
        found.append(report(_ENTRY_GONE, group, facts, seconds_lost=lost))
    found += (_report_bypass(group, compiles) for group in _group_by_reason(rows, "bypass"))
    found += map(_report_failure, _group_by_reason(rows, "failed"))
    return found + _report_unused(rows, costs)


class LoadedArtifacts(NamedTuple):
    """The artifacts of one cache that `load_cache_artifacts` made its entries in one process: `unused` was found by no
    lookup. `missed` are the lookups of that cache that found nothing.
    """

    cache: str
    loaded: Sequence[CacheLookup]
    unused: Sequence[CacheLookup]
    missed: Sequence[CacheLookup]


def list_loaded(rows: Iterable[CacheLookup]) -> list[LoadedArtifacts]:
    """What was loaded and what of it was used, by process and cache."""
    by_cache = group_by(rows, lambda row: (row.rank, row.pid, row.cache))
    found = []
    for (_, _, cache), group in by_cache.items():
        # A profile that grew is several artifacts of one key.
        loaded = [*{row.key: row for row in group if row.outcome == "loaded"}.values()]
        hits = {row.key for row in group if row.outcome == "hit"}
        # A process that compiles kernels does not say which tuning it found.
        unused = [] if None in hits else [row for row in loaded if row.key not in hits]
        if loaded and cache:
            missed = [row for row in group if row.outcome in MISSES]
            found.append(LoadedArtifacts(cache, loaded, unused, missed))
    return found


def _report_unused(rows: Iterable[CacheLookup], costs: Mapping[str | None, float]) -> list[Finding]:
    """Graphs that were compiled in processes that had loaded artifacts of graphs, and used none of them."""
    graphs = [found for found in list_loaded(rows) if found.cache in NAMES]
    by_process = group_by(graphs, lambda found: (found.loaded[0].rank, found.loaded[0].pid)).values()
    useless = [found for group in by_process if all(len(f.unused) == len(f.loaded) for f in group) for found in group]
    missed = [row for found in useless for row in found.missed]
    if not missed:
        return []
    keys = {row.key for found in useless for row in found.loaded}
    lost = _sum_costs(missed, costs)
    facts = {
        "graphs": f"{format_amount(len({row.compile_key for row in missed}), 'compile')} found no graph in a cache",
        "cost": f" and cost {format_seconds(lost)}" if lost else "",
        "artifacts": format_amount(len(keys), "artifact"),
        "advice": LOAD_EARLIER if any(row.key in keys for row in missed) else _SAVE_SAME,
    }
    return [report(_UNUSED, missed, facts, seconds_lost=lost, details=_list_differences(missed))]


def _list_differences(rows: Iterable[CacheLookup]) -> tuple[str, ...]:
    """How keys differ from the nearest earlier ones, each difference once."""
    differences = dict.fromkeys(text for row in rows for text in row.key_diff or ())
    return tuple(format_line(text, 200) for text in list(differences)[:64])


def _sum_costs(rows: Iterable[CacheLookup], costs: Mapping[str | None, float]) -> float:
    """Seconds of the compiles behind these misses. AOTAutogradCache's include FxGraphCache's, so the larger sum of a
    compile counts.
    """
    compiles: dict[object, dict[str | None, float]] = defaultdict(lambda: defaultdict(float))
    for row in rows:
        compiles[row.compile_key][row.cache] += costs.get(row.key, 0.0)
    return sum_seconds(max(caches.values()) for caches in compiles.values())


def _report_settings(names: tuple[str, ...], rows: list[CacheLookup], costs: Mapping[str | None, float]) -> Finding:
    lost = _sum_costs(rows, costs)
    texts = (text for row in rows for text in row.key_diff or () if get_component(text) == names[0])
    change = format_line(next(texts).partition(": ")[2], 80)
    earlier = find_first(row.nearest_session for row in rows)
    facts = {
        "misses": format_amount(len(rows), "cache miss", "cache misses"),
        "cost": f" cost {format_seconds(lost)}" if lost else "",
        "names": format_names(names),
        "change": f" ({change})" if len(names) == 1 else "",
        "differ": "differs" if len(names) == 1 else "differ",
        "advice": _explain(names) + (f" The earlier key is from {format_line(earlier)}." if earlier else ""),
    }
    return report(_SETTINGS_DIFFER, rows, facts, seconds_lost=lost, details=_list_differences(rows))


def _group_by_reason(rows: Iterable[CacheLookup], outcome: str) -> list[list[CacheLookup]]:
    """The lookups and stores that ended with `outcome`, by cache, tier and reason."""
    ended = [row for row in rows if row.outcome == outcome]
    return list(group_by(ended, lambda row: (row.cache, row.tier, format_first_line(row.reason or ""))).values())


def _report_bypass(rows: list[CacheLookup], compiles: Mapping[str, float]) -> Finding:
    again = sum_seconds(compiles.get(key) for key in {row.compile_key for row in rows if row.compile_key is not None})
    reason = format_first_line(rows[0].reason or "")
    change = find_bypass_change(find_first(row.reason for row in rows) or "")
    facts = {
        "cache": _name(rows[0].cache),
        "reason": reason or "no reason given",
        "change": describe_bypass_change(change),
        "paid": f", so {format_seconds(again)} of compile time" if again else ", so its compile time",
    }
    return report(
        _BYPASSED,
        rows,
        facts,
        fix=change.settings if change else None,
        changes=(change,) if change else (),
        details=(reason,) if reason else (),
    )


_REMOTE = (
    "Check that the server can be reached (for Redis: TORCHINDUCTOR_REDIS_HOST and TORCHINDUCTOR_REDIS_PORT), or turn "
    "the remote cache off. torch still compiles, but does not share the results with other machines."
)
_LOCAL = (
    "Check that the cache directory (TORCHINDUCTOR_CACHE_DIR) can be written and its disk is not full, and delete "
    "entries that cannot be read. torch still compiles."
)


def _report_failure(rows: list[CacheLookup]) -> Finding:
    is_remote = rows[0].tier == "remote"
    why, error = format_first_line(rows[0].reason or ""), find_first(row.exception_type for row in rows)
    if error and not why.startswith(error):
        why = f"{format_line(error, 60)}: {why}".rstrip(": ")
    facts = {
        "cache": f"{_name(rows[0].cache)}{' (remote)' if is_remote else ''}",
        "reason": why or "no reason given",
        "advice": _SAVE_AGAIN if rows[0].action == "load" else _REMOTE if is_remote else _LOCAL,
    }
    waited = sum_seconds(row.duration_s for row in rows)
    return report(_FAILED, rows, facts, seconds_lost=waited, details=(why,) if why else ())


def _name(cache: str | None) -> str:
    return format_line(cache or "a cache", 40)


#: Outcome -> the count that it belongs to.
COUNTED = {
    "hit": "hits",
    "miss": "misses",
    "guard_miss": "misses",
    "bypass": "bypassed",
    "disabled": "bypassed",
    "saved": "stored",
    "failed": "failed",
}
#: Outcomes of a lookup that gave nothing, or failed.
UNMET = ("miss", "guard_miss", "bypass", "disabled", "failed")
#: A row lists so many different reasons of its group.
SHOWN_REASONS = 20

#: Cache, tier, function, file and line.
GroupKey = tuple[str | None, str | None, str | None, str | None, int | None]


@dataclass
class LookupGroup:
    """The lookups of one function in one tier of one cache, in the order in which they are added."""

    first: CacheLookup
    last: CacheLookup
    counts: Counter[str] = field(default_factory=Counter)
    saved_s: float | None = None
    taken_s: float | None = None
    why: str | None = None
    reasons: Counter[str] = field(default_factory=Counter)

    @staticmethod
    def key(row: CacheLookup) -> GroupKey:
        """What the lookups of one group have in common."""
        return row.cache, row.tier, row.function, row.file, row.line

    @classmethod
    def of(cls, row: CacheLookup) -> LookupGroup:
        """A group without lookups, for those that are like `row`."""
        return cls(row, row)

    def add(self, row: CacheLookup) -> None:
        """Count a lookup of the group."""
        self.last = row
        self.counts[COUNTED.get(row.outcome or "", "other")] += 1
        self.saved_s = _add_seconds(self.saved_s, row.saved_s)
        self.taken_s = _add_seconds(self.taken_s, row.taken_s)
        texts = (row.guard, "; ".join(row.key_diff or ()), row.reason)
        reason = next(filter(None, texts), None) if row.outcome in UNMET else None
        if reason is not None:
            self.why = format_line(reason, 300)
            self.reasons[self.why] += 1

    def as_dict(self) -> dict[str, object]:
        """Its cells as a row of a table; `time_ns` is when the latest lookup began."""
        counts = {name: self.counts[name] for name in dict.fromkeys((*COUNTED.values(), "other"))}
        return {
            "event_id": self.first.event_id,
            "time_ns": self.last.time_ns,
            **{name: getattr(self.first, name) for name in ("cache", "tier", "function", "file", "line")},
            "last": self.last.outcome,
            "why": self.why,
            **counts,
            "saved_s": self.saved_s,
            "taken_s": self.taken_s,
            "reasons": [f"{count}x {reason}" for reason, count in self.reasons.most_common(SHOWN_REASONS)],
        }


def _add_seconds(total: float | None, value: float | None) -> float | None:
    return (total or 0.0) + value if is_timed(value) else total
