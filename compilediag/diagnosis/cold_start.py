"""Why a start compiled what an earlier one found in a cache: the first difference of their cache keys, and its cost.

One difference causes many: another version of torch makes another key of every graph, and each graph's kernels are
built again. So each compile has one cause, the first of `FACTORS` in which its key differs from the nearest key of the
same function in the good start. Further differences, and misses in other caches, follow from it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple

from ..decode.cache_keys import CODE, CacheKey
from ..events import COMPILE_CACHES, CacheLookup, Compile, Rows, VllmConfig
from .evidence import group_by, sum_seconds
from .rules.caches import LOAD_EARLIER, MISSES, LoadedArtifacts, advise_bypass, list_loaded


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
BYPASSED = Factor("bypassed", "the cache was bypassed", "session.findings() of this start says what to change.")
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
NOT_SAVED = Factor(
    "not_saved",
    "artifacts were loaded, but not those of these graphs",
    "Call torch.compiler.save_cache_artifacts() after all functions were called with the inputs that are served.",
)
LOADED = Factor("loaded", "the artifact was loaded, but not found", LOAD_EARLIER)
NEW = Factor("new", "compiled in this start only", "Call the function where the caches are filled.")
UNKNOWN = Factor(
    "unknown", "another key, whose parts were not recorded", 'Record both starts with detail="full", or TORCH_TRACE.'
)

#: The parts of a session's meta that make a difference to caches.
ENVIRONMENT = ("torch_version", "triton_version", "python_version", "platform", "device")


@dataclass(frozen=True)
class Start:
    """A start of the program: its rows, facts and cache keys by name.

    `names` are the keys of the entries in a folder of caches, which has nothing else of a start. `factors` are what
    vLLM made the name of its cache from, in a folder of its caches, which has nothing else either.
    """

    rows: Rows
    meta: Mapping[str, Any] = field(default_factory=dict)
    keys: Mapping[str, CacheKey] = field(default_factory=dict)
    names: frozenset[str] = frozenset()
    factors: Mapping[str, str] = field(default_factory=dict)

    @property
    def seconds(self) -> float | None:
        """How long it compiled, in s; None if that is not known."""
        return None if self.names or self.factors else sum_seconds(row.duration_s for row in self.rows.rows(Compile))


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
    """`causes`: the most expensive first. `served`: how many graphs of the bad start came from a cache.

    `environment`: what differs around the program, as `name: good -> bad`. `artifacts`: what the bad start loaded with
    `torch.compiler.load_cache_artifacts`, by process and cache.
    """

    causes: tuple[ColdCause, ...]
    served: int
    environment: tuple[str, ...]
    artifacts: tuple[LoadedArtifacts, ...] = ()


def compare_starts(good: Start, bad: Start) -> ColdStart:
    """Explain each compile of the bad start that no cache of compiled graphs served."""
    compare, served = _Comparison(good, bad), 0
    by_compile = group_by(_list_lookups(bad), lambda row: row.compile_key)
    found: dict[tuple[Factor, tuple[str, ...]], list[tuple[_Blame, Sequence[CacheLookup]]]] = {}
    for lookups in by_compile.values():
        asked = [row for row in lookups if row.cache in COMPILE_CACHES]
        if asked and asked[-1].outcome == "hit":
            served += 1
        elif asked:
            # A miss in AOTAutograd's cache is followed by a look-up in Inductor's, whose entry is the larger part.
            blame = compare.blame(asked[-1])
            found.setdefault((blame.factor, blame.changes), []).append((blame, lookups))
    compiles = {row.compile_key: row for row in bad.rows.rows(Compile)}
    causes = [_make_cause(group, compiles) for group in found.values()]
    return ColdStart(
        tuple(sorted(causes, key=lambda cause: (-cause.seconds, -cause.graphs))),
        served,
        (*compare.environment.values(), *_compare_vllm(good, bad)),
        compare.artifacts,
    )


def _list_lookups(start: Start) -> list[CacheLookup]:
    return [row for row in start.rows.rows(CacheLookup) if row.action == "look_up"]


class _Blame(NamedTuple):
    """Why one look-up gave nothing; see `ColdCause`."""

    factor: Factor
    changes: tuple[str, ...] = ()
    others: tuple[str, ...] = ()


class _Comparison:
    """Compares the keys of two starts. `environment`: what differs around the program. `artifacts`: see `ColdStart`."""

    def __init__(self, good: Start, bad: Start):
        self._good, self._bad = good, bad
        #: The keys of the good start, by cache and function.
        self._keys = group_by(_list_lookups(good), lambda row: (row.cache, row.function))
        known = [name for name in ENVIRONMENT if None not in (good.meta.get(name), bad.meta.get(name))]
        changed = {name: (good.meta[name], bad.meta[name]) for name in known if good.meta[name] != bad.meta[name]}
        self.environment = {name: f"{name}: {old} -> {new}" for name, (old, new) in changed.items()}
        self.artifacts = tuple(list_loaded(bad.rows.rows(CacheLookup)))
        #: Cache -> the keys of its artifacts.
        self._loaded: dict[str | None, set[str | None]] = defaultdict(set)
        for found in self.artifacts:
            self._loaded[found.cache] |= {row.key for row in found.loaded}

    def blame(self, row: CacheLookup) -> _Blame:
        """What kept a look-up of the bad start from being a hit."""
        if row.outcome == "guard_miss":
            return _Blame(GUARDED, (row.guard,) if row.guard else ())
        if row.outcome != "miss":
            return _Blame(BYPASSED, (row.reason,) if row.reason else ())
        loaded = self._loaded.get(row.cache, ())
        if row.key in loaded:
            return _Blame(LOADED)
        if row.key in self._good.names or row.key in self._good.keys:
            return _Blame(NOT_SAVED if loaded else ABSENT)
        same = self._keys.get((row.cache, row.function), ())
        candidates = [key for name in {other.key or "" for other in same} if (key := self._good.keys.get(name))]
        own = self._bad.keys.get(row.key or "")
        if own is None or not candidates:
            return _Blame(UNKNOWN if same or self._good.names else NEW)
        differences = own.find_changes(min(candidates, key=lambda key: (own.distance(key), key.key)))
        if version := self.environment.get("torch_version"):
            differences["torch_version"] = [version]  # Logs of some versions of torch have no such part of a key.
        factors = {
            name: next((one for one in FACTORS if name.startswith(one.components)), OTHER) for name in differences
        }
        first = min(factors.values(), key=FACTORS.index, default=OTHER)
        return _Blame(
            first,
            tuple(text for name, texts in differences.items() if factors[name] is first for text in texts),
            tuple(name for name in differences if factors[name] is not first),
        )


def _make_cause(
    found: Sequence[tuple[_Blame, Sequence[CacheLookup]]], compiles: Mapping[str | None, Compile]
) -> ColdCause:
    """The cause of graphs whose look-ups have the same factor and changes."""
    own = [compiles[rows[0].compile_key] for _, rows in found if rows[0].compile_key in compiles]
    missed = (row for _, rows in found for row in rows if row.outcome in MISSES)
    return ColdCause(
        found[0][0].factor,
        found[0][0].changes,
        len(found),
        tuple(sorted(own, key=lambda row: -(row.duration_s or 0))),
        sum_seconds(row.duration_s for row in own),
        tuple(dict.fromkeys(name for blame, _ in found for name in blame.others)),
        Counter(row.cache or "?" for row in missed if row.cache not in COMPILE_CACHES),
    )


def _compare_vllm(good: Start, bad: Start) -> list[str]:
    """How vLLM's own configuration differs, from which it makes the name of its cache, and then its factors. A hash of
    several factors is named only if none of them is known to differ.
    """
    before, after = ({row.part: row for row in start.rows.rows(VllmConfig)} for start in (good, bad))
    names = [each.name for each in fields(VllmConfig) if each.metadata and each.name not in ("part", "origin")]
    changes = [
        f"vLLM's {name} of {part}: {old} -> {new}"
        for part in before
        if part in after
        for name in names
        if (old := getattr(before[part], name)) != (new := getattr(after[part], name))
    ]
    old_factors, new_factors = good.factors, bad.factors
    differ = [name for name in sorted({*old_factors, *new_factors}) if old_factors.get(name) != new_factors.get(name)]
    parts = {name.partition(".")[0] for name in differ if "." in name}
    shown = [name for name in differ if name.removesuffix("_hash") not in parts or "." in name]
    return changes + [
        f"vLLM's {name}: {old_factors.get(name, 'none')} -> {new_factors.get(name, 'none')}" for name in shown
    ]
