"""Why a start compiled what an earlier one found in a cache: the first difference of their cache keys, and its cost.

One difference causes many: another version of torch makes another key of every graph, and each graph's kernels are
built again. So each compile has one cause, the first of `FACTORS` in which its key differs from the nearest key of the
same function in the good start. Further differences, and misses in other caches, follow from it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple

from ..decode.cache_keys import CODE, CacheKey
from ..events import COMPILE_CACHES, CacheLookup, Compile, Rows, VllmConfig
from .evidence import group_by, sum_seconds
from .rules.caches import advise_bypass


class Factor(NamedTuple):
    """A kind of difference, and what to do about it. `components`: what the names of a key's components begin with."""

    code: str
    text: str
    advice: str
    components: tuple[str, ...] = ()


#: What causes comes before what it causes.
TORCH = Factor(
    "torch",
    "another build of torch",
    "Fill the caches with the build that serves: every key contains a hash of torch's sources.",
    ("torch_version",),
)
DEVICE = Factor(
    "device",
    "another device, driver or Triton",
    "Fill the caches on a machine of the same kind, with the same image.",
    ("system_info",),
)
SETTING = Factor(
    "setting",
    "another setting",
    "Give both starts the same settings, options of torch.compile and environment variables.",
    (
        *("inductor_config", "autograd_config", "fx_kwargs", "aot_config", "cache_key_tag", "deterministic_algorithms"),
        *("cuda_matmul_settings", "cpp_runtime_thread_count", "nested_inductor_config_patches"),
    ),
)
CODE_CHANGED = Factor(
    "code",
    "other code, or a constant in it",
    "Fill the caches with the code that is deployed. A number that varies belongs in a tensor: it is part of the code.",
    (*CODE, "constant"),
)
INPUTS = Factor(
    "inputs",
    "other inputs",
    "Call the function with these inputs where the caches are filled; session.warmup(path) writes a script that does.",
    ("example_inputs", "aot_example_inputs"),
)
OTHER = Factor("other", "another part of the key", "Make this part the same in both starts.")
FACTORS = (TORCH, DEVICE, SETTING, CODE_CHANGED, INPUTS, OTHER)
BYPASSED = Factor("bypassed", "the cache was not asked", "session.findings() of this start says what to change.")
GUARDED = Factor(
    "guarded",
    "an entry was there, but its guards failed",
    "Call the function with these inputs where the caches are filled.",
)
ABSENT = Factor(
    "absent",
    "the same key, but no entry",
    "Copy the whole cache directory (TORCHINDUCTOR_CACHE_DIR), or torch.compiler.save_cache_artifacts() and load them "
    "before the first compile; the directory has to be readable and the same for all ranks.",
)
NEW = Factor("new", "compiled in this start only", "Call the function where the caches are filled.")
UNKNOWN = Factor(
    "unknown", "another key, whose parts were not recorded", 'Record both starts with detail="full", or TORCH_TRACE.'
)

#: The parts of a session's meta that make a difference to caches.
ENVIRONMENT = ("torch_version", "triton_version", "python_version", "platform", "device")


@dataclass(frozen=True)
class Start:
    """A start of the program: its rows, facts and cache keys by name. `names` are keys that are known by name alone:
    a folder of caches has the keys of its entries.
    """

    rows: Rows | None
    meta: Mapping[str, Any] = field(default_factory=dict)
    keys: Mapping[str, CacheKey] = field(default_factory=dict)
    names: frozenset[str] = frozenset()


@dataclass(frozen=True)
class ColdCause:
    """Graphs that no cache served, for one reason. `changes` are its differences, as `name: good -> bad`.
    `compiles` are those of the graphs, as far as they were recorded.

    `follows`: how many look-ups in other caches missed in these compiles, by cache. `others`: components that differ as
    well, which follow from it or would have been enough by themselves.
    """

    factor: Factor
    changes: tuple[str, ...]
    graphs: int
    compiles: tuple[Compile, ...]
    seconds: float
    others: tuple[str, ...] = ()
    follows: Mapping[str, int] = field(default_factory=dict)

    @property
    def advice(self) -> str:
        """What to do, in a sentence or two."""
        return advise_bypass(self.changes[0]) if self.factor is BYPASSED and self.changes else self.factor.advice


@dataclass(frozen=True)
class ColdStart:
    """`causes`: the most expensive first. `served`: graphs of the bad start that came from a cache. `seconds` that the
    two starts compiled; None if not recorded. `environment`: what differs around the program, as `name: good -> bad`.
    """

    causes: tuple[ColdCause, ...]
    served: int
    seconds: tuple[float | None, float | None]
    environment: tuple[str, ...]


def compare_starts(good: Start, bad: Start) -> ColdStart:
    """Explain each compile of the bad start that no cache of compiled graphs served."""
    rows = bad.rows.rows(CacheLookup) if bad.rows is not None else ()
    compiles = {row.compile_key: row for row in (bad.rows.rows(Compile) if bad.rows is not None else ())}
    by_compile = group_by((row for row in rows if row.action == "look_up"), lambda row: row.compile_key)
    verdicts: dict[tuple[Factor, tuple[str, ...]], list[_Verdict]] = {}
    served = 0
    for compile_key, lookups in by_compile.items():
        asked = [row for row in lookups if row.cache in COMPILE_CACHES]
        if not asked:
            continue
        if asked[-1].outcome == "hit":
            served += 1
            continue
        # A look-up in AOTAutograd's cache that misses is followed by one in Inductor's, whose entry is the larger part.
        verdict = _judge(good, bad, asked[-1], compiles.get(compile_key), lookups)
        verdicts.setdefault((verdict.factor, verdict.changes), []).append(verdict)
    causes = [_make_cause(factor, changes, found) for (factor, changes), found in verdicts.items()]
    return ColdStart(
        tuple(sorted(causes, key=lambda cause: (-cause.seconds, -cause.graphs))),
        served,
        (_sum_seconds(good), _sum_seconds(bad)),
        (*_compare_environment(good.meta, bad.meta), *_compare_vllm(good, bad)),
    )


class _Verdict(NamedTuple):
    factor: Factor
    changes: tuple[str, ...]
    others: tuple[str, ...]
    compile: Compile | None
    lookups: Sequence[CacheLookup]


def _judge(
    good: Start, bad: Start, row: CacheLookup, compile: Compile | None, lookups: Sequence[CacheLookup]
) -> _Verdict:
    def blame(factor: Factor, changes: Sequence[str] = (), others: Sequence[str] = ()) -> _Verdict:
        return _Verdict(factor, tuple(changes), tuple(others), compile, lookups)

    if row.outcome == "guard_miss":
        return blame(GUARDED, [row.guard] if row.guard else [])
    if row.outcome != "miss":
        return blame(BYPASSED, [row.reason] if row.reason else [])
    if row.key in good.names or row.key in good.keys:
        return blame(ABSENT)
    candidates = [good.keys[key] for key in _list_keys(good, row) if key in good.keys]
    own = bad.keys.get(row.key or "")
    if own is None or not candidates:
        return blame(NEW if good.rows is not None and not _list_keys(good, row) else UNKNOWN)
    nearest = min(candidates, key=own.distance)
    # Logs of some versions of torch lack the version among the parts of their keys.
    version = [text for text in _compare_environment(good.meta, bad.meta) if text.startswith("torch_version")]
    differences = {**own.find_changes(nearest), **({"torch_version": version} if version else {})}
    if not differences:
        return blame(OTHER)
    first = min((_find_factor(name) for name in differences), key=FACTORS.index)
    return blame(
        first,
        [text for name, texts in differences.items() if _find_factor(name) is first for text in texts],
        [name for name in differences if _find_factor(name) is not first],
    )


def _list_keys(start: Start, row: CacheLookup) -> list[str]:
    """The keys of the same function in the same cache."""
    rows = start.rows.rows(CacheLookup) if start.rows is not None else ()
    wanted = (row.cache, row.function)
    return list(dict.fromkeys(other.key for other in rows if other.key and (other.cache, other.function) == wanted))


def _find_factor(component: str) -> Factor:
    return next((factor for factor in FACTORS if component.startswith(factor.components)), OTHER)


def _make_cause(factor: Factor, changes: tuple[str, ...], found: Sequence[_Verdict]) -> ColdCause:
    compiles = tuple(verdict.compile for verdict in found if verdict.compile is not None)
    missed = (row for verdict in found for row in verdict.lookups if row.outcome in ("miss", "guard_miss"))
    return ColdCause(
        factor,
        changes,
        len(found),
        tuple(sorted(compiles, key=lambda row: -(row.duration_s or 0))),
        sum_seconds(row.duration_s for row in compiles),
        tuple(dict.fromkeys(name for verdict in found for name in verdict.others)),
        Counter(row.cache or "?" for row in missed if row.cache not in COMPILE_CACHES),
    )


def _compare_environment(good: Mapping[str, Any], bad: Mapping[str, Any]) -> list[str]:
    known = [name for name in ENVIRONMENT if good.get(name) is not None and bad.get(name) is not None]
    return [f"{name}: {good[name]} -> {bad[name]}" for name in known if good[name] != bad[name]]


def _compare_vllm(good: Start, bad: Start) -> list[str]:
    """How vLLM's own configuration differs, from which it makes the name of its cache."""
    if good.rows is None or bad.rows is None:
        return []
    before, after = ({row.part: row for row in start.rows.rows(VllmConfig)} for start in (good, bad) if start.rows)
    names = [each.name for each in fields(VllmConfig) if each.metadata and each.name not in ("part", "origin")]
    return [
        f"vLLM's {name} of {part}: {old} -> {new}"
        for part in before.keys() & after.keys()
        for name in names
        if (old := getattr(before[part], name)) != (new := getattr(after[part], name))
    ]


def _sum_seconds(start: Start) -> float | None:
    return None if start.rows is None else sum_seconds(row.duration_s for row in start.rows.rows(Compile))
