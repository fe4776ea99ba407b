"""The ranks of one session, compared with each other: `session.ranks()`, and where they first differ, and in what.

All ranks of a job run one program, so their compiles come in one order, each for the same reason. The ranks are walked
through step by step. A call that fits what is compiled leaves no trace, so a rank that lacks a step either had an entry
that fit, or did not make the call.
"""

from __future__ import annotations

import statistics
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from itertools import zip_longest
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from ..decode.guards.path import format_expression
from ..decode.rank_steps import GraphRun, RankStep, Steps, digest_steps, estimate_runtimes, find_graph_runs, find_steps
from ..document import Block, Items, Section, shorten_items, to_text
from ..events import COMPILE_CACHES, CacheLookup, Compile, Recompile, Rows
from ..formatting import format_amount, format_count, format_function, format_line, format_names, format_seconds
from .evidence import get_ids, get_place, group_by, is_timed, make_place_fields, sum_seconds

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Divergence:
    """A step at which ranks differ. `ranks` are those that differ from the `others`, which are more, or as many.

    `kind`: way (they compile something else, or nothing), guard, outcome, graph_breaks, collectives, graph, caches, or
    order (they ran compiled graphs in a different order, where torch logged that; `position` is then that of the run).
    `value` and `other_value` are what the guard met, or what the caches answered, on either side, None if nothing is
    known. `time_ns` is that of the differing rank.
    """

    kind: str
    position: int
    ranks: tuple[int, ...]
    others: tuple[int, ...]
    compile_id: str | None = None
    function: str | None = None
    file: str | None = None
    line: int | None = None
    time_ns: int = 0
    guard_source: str | None = None
    value: str | None = None
    other_value: str | None = None
    evidence: tuple[int, ...] = ()
    sentence: str = ""

    @property
    def time(self) -> pd.Timestamp:
        """When the step began on the differing rank, in UTC."""
        import pandas as pd

        return pd.Timestamp(self.time_ns, tz="UTC")


class Aspect(NamedTuple):
    """What is compared of a step that all ranks have. `describe`: what two ranks have of it, in which they differ."""

    get: Callable[[RankStep], Hashable]
    otherwise: str
    describe: Callable[[RankStep, RankStep], tuple[str, str]]


def _describe_each(describe: Callable[[RankStep], str]) -> Callable[[RankStep, RankStep], tuple[str, str]]:
    return lambda step, other: (describe(step), describe(other))


def _describe_collectives(step: RankStep, other: RankStep) -> tuple[str, str]:
    """The first collectives that two ranks do not have in common."""
    pairs = enumerate(zip_longest(step.collectives, other.collectives), 1)
    number, (own, usual) = next((number, ops) for number, ops in pairs if ops[0] != ops[1])
    return f"number {number} is {own or 'no more'}", usual or "no more"


def _describe_graph(step: RankStep) -> str:
    counts = zip(step.graph, ("calls", "nodes", "inputs"), strict=True)
    return ", ".join(f"{count} {name}" for count, name in counts if count is not None)


def _describe_caches(step: RankStep) -> str:
    counts = Counter(f"{cache}{' remote' if tier == 'remote' else ''} {end}" for cache, tier, end in step.caches)
    return ", ".join(f"{what}{f' {n}x' if n > 1 else ''}" for what, n in counts.items()) or "no lookup"


#: Kind of a divergence -> what differs, the most important first.
ASPECTS = {
    "guard": Aspect(
        lambda step: step.guard,
        "recompiled for a different reason",
        _describe_each(lambda step: f"guard {_describe_guard(step.recompile)}" if step.recompile else "no recompile"),
    ),
    "outcome": Aspect(
        lambda step: step.outcome,
        "had a different outcome",
        _describe_each(lambda step: ", ".join(filter(None, step.outcome)) or "unknown"),
    ),
    "graph_breaks": Aspect(
        lambda step: step.breaks,
        "had different graph breaks",
        _describe_each(lambda step: format_names(step.breaks) if step.breaks else "no graph break"),
    ),
    "collectives": Aspect(lambda step: step.collectives, "had different collectives", _describe_collectives),
    "graph": Aspect(lambda step: step.graph, "compiled a different graph", _describe_each(_describe_graph)),
    "caches": Aspect(lambda step: step.caches, "had different cache results", _describe_each(_describe_caches)),
}

#: rank -> its step at one position, None if it has none.
StepsAt = dict[int, RankStep | None]


def find_divergences(steps: Steps, is_live: bool = False) -> list[Divergence]:
    """Where the ranks first differ in each kind, in order; what comes after they went different ways is not compared.

    `is_live`: they still run, and a rank that has no step yet may come to it.
    """
    if len(steps) < 2:
        return []
    found: dict[str, Divergence] = {}
    for position in range(max(len(own) for own in steps.values())):
        here = {rank: own[position] if position < len(own) else None for rank, own in steps.items()}
        if is_live and None in here.values():
            break
        groups = _group_ranks(here, lambda step: step.target, steps)
        if len(groups) > 1:
            found["way"] = _compare_targets(position, groups, here, steps)
            break
        for kind, aspect in ASPECTS.items():
            groups = _group_ranks(here, aspect.get, steps)
            if len(groups) > 1 and kind not in found:
                found[kind] = _compare_aspect(kind, position, groups, here)
    return sorted(found.values(), key=lambda one: (one.position, ["way", *ASPECTS].index(one.kind)))


@dataclass(frozen=True)
class ColdRank:
    """A rank whose caches lacked graphs that those of another rank had from the start.

    `other` is a rank that found the first of them, `missed` how many graphs this one had to compile. `extra_s` (s) is
    what its compiles took longer, as far as both have ended. `function`, `file` and `line` are of the first graph,
    `evidence` the look-ups that missed.
    """

    rank: int
    other: int
    missed: int
    extra_s: float
    function: str | None
    file: str | None
    line: int | None
    evidence: tuple[int, ...]

    @property
    def sentence(self) -> str:
        """`rank 3 compiles 4 graphs that rank 0 found in a cache (12 s longer so far)`."""
        took = f" ({format_seconds(self.extra_s)} longer so far)" if self.extra_s > 0 else ""
        amount = format_amount(self.missed, "graph")
        return f"rank {self.rank} compiles {amount} that rank {self.other} found in a cache{took}"


def find_cold_ranks(data: Rows) -> list[ColdRank]:
    """The ranks whose caches are cold while those of others are warm, the one that lacks most first.

    A look-up is recorded before what it missed is compiled, so that they are known while the others wait. A rank that
    fills a cache from which others then read is not cold: their hits come after it stored the entry.
    """
    rows = [row for row in data.rows(CacheLookup) if row.cache in COMPILE_CACHES and row.rank is not None]
    stored: dict[str | None, int] = {}
    for row in rows:
        if row.action == "store":
            stored[row.key] = min(row.time_ns, stored.get(row.key, row.time_ns))
    # The same graph on each rank -> the first answer that each rank got for it.
    answers: dict[object, dict[int | None, CacheLookup]] = defaultdict(dict)
    for row in rows:
        if row.action == "look_up" and row.outcome in ("hit", "miss"):
            answers[row.compile_id, row.cache].setdefault(row.rank, row)
    missed: dict[int, dict[str | None, tuple[CacheLookup, CacheLookup]]] = defaultdict(dict)
    for of_ranks in answers.values():
        # Not what a rank of this very job had stored before it was found.
        answered = [row for row in of_ranks.values() if row.outcome == "hit"]
        hits = [row for row in answered if row.key not in stored or row.time_ns < stored[row.key]]
        for row in of_ranks.values():
            if hits and row.outcome == "miss" and row.rank is not None:
                missed[row.rank].setdefault(row.compile_id, (row, hits[0]))
    compiles = {(row.rank, row.compile_id): row for row in reversed(data.rows(Compile))}
    cold = [_describe_cold(rank, list(pairs.values()), compiles) for rank, pairs in missed.items()]
    return sorted(cold, key=lambda one: (-one.missed, one.rank))


def _describe_cold(
    rank: int,
    pairs: Sequence[tuple[CacheLookup, CacheLookup]],
    compiles: Mapping[tuple[int | None, str | None], Compile],
) -> ColdRank:
    own = [compiles.get((rank, miss.compile_id)) for miss, _ in pairs]
    theirs = [compiles.get((hit.rank, hit.compile_id)) for _, hit in pairs]
    known = [
        (ours.duration_s, other.duration_s)
        for ours, other in zip(own, theirs, strict=True)
        if ours is not None and other is not None and ours.duration_s is not None and other.duration_s is not None
    ]
    first = next((row for row in (*own, *theirs) if row is not None), None)
    return ColdRank(
        rank=rank,
        other=pairs[0][1].rank or 0,
        missed=len(pairs),
        extra_s=sum(ours - other for ours, other in known),
        **make_place_fields(get_place(first) if first else (None, None, None)),
        evidence=get_ids(miss for miss, _ in pairs),
    )


def _group_ranks(here: StepsAt, aspect: Callable[[RankStep], Hashable], steps: Steps) -> list[list[int]]:
    """The groups of ranks that agree: the largest first, then those without a recompile, then those of lower ranks.

    The session has rows of the first rank of each group.
    """

    def describe(rank: int) -> Hashable:
        step = here[rank]
        return None if step is None else (aspect(step),)

    def order(group: list[int]) -> tuple[int, bool, list[int]]:
        step = here[group[0]]
        return -len(group), step is not None and step.recompile is not None, group

    return sorted((steps.expand(alike) for alike in group_by(here, describe).values()), key=order)


def _compare_targets(position: int, groups: list[list[int]], here: StepsAt, steps: Steps) -> Divergence:
    """Ranks that compile something else, or nothing."""
    others, ranks = groups[0], groups[1]
    step, other = here[ranks[0]], here[others[0]]
    own, usual = steps[ranks[0]], steps[others[0]]
    if step is not None and other is not None:
        own_next, usual_next = ({one.target for one in each[position:]} for each in (own, usual))
        if step.target in usual_next and other.target not in own_next:
            # It left out what the others compile here: it goes on with what they come to later.
            known, who = _describe_known_values(own[:position], other), _name_ranks(ranks)
            sentence = (
                f"{who} did not compile {_locate(other)}: {_describe_cause(other)} on {_name_ranks(others)}; "
                f"{who} {_describe_next(step, known)}"
            )
            values = known, _get_actual(other)
            return _make_divergence("way", position, groups, other, sentence, values, [other, step])
    before = own[position - 1] if position else None
    last = next(found for found in (step, before, other) if found is not None)
    known = _describe_known_values(usual[:position], step)
    if step is None:
        event = f"compiled nothing{f' more after {_locate(last)}' if position else ''}"
    else:
        event = f"diverged at {_locate(last)}: {_describe_cause(step)}"
    instead = _describe_next(other, known)
    if other is not None and step is not None and other.target[1:] == step.target[1:]:
        instead = f"compiled it as {other.compile_id}: {_describe_cause(other)}"
    sentence = f"{_name_ranks(ranks)} {event}; {_name_ranks(others)} {instead}"
    found = _get_actual(step), known or _get_actual(other)
    return _make_divergence("way", position, groups, last, sentence, found, [step, other])


def _get_actual(step: RankStep | None) -> str | None:
    return step.recompile.actual if step and step.recompile else None


def _compare_aspect(kind: str, position: int, groups: list[list[int]], here: StepsAt) -> Divergence:
    """Ranks that compile the same function in another way."""
    others, ranks = groups[0], groups[1]
    step, other = here[ranks[0]], here[others[0]]
    assert step is not None and other is not None, "ranks without a step differ in their target"
    aspect = ASPECTS[kind]
    own, usual = aspect.describe(step, other)
    event = f"{aspect.otherwise} at {_locate(step)}: {own}"
    sentence = f"{_name_ranks(ranks)} {event}; {_name_ranks(others)}: {usual}"
    return _make_divergence(kind, position, groups, step, sentence, (own, usual), [step, other])


def _make_divergence(
    kind: str,
    position: int,
    groups: list[list[int]],
    step: RankStep,
    sentence: str,
    values: tuple[str | None, str | None],
    evidence: Sequence[RankStep | None],
) -> Divergence:
    return Divergence(
        kind=kind,
        position=position,
        ranks=tuple(groups[1]),
        others=tuple(groups[0]),
        compile_id=step.compile_id,
        **make_place_fields(get_place(step.event)),
        time_ns=step.event.time_ns,
        guard_source=step.recompile.guard_source if step.recompile else None,
        value=values[0] or None,
        other_value=values[1] or None,
        evidence=tuple(number for each in evidence if each is not None for number in each.evidence),
        sentence=sentence + _count_groups(groups[2:]),
    )


# The order in which ranks ran their graphs


def find_order_divergence(runs: dict[int, list[GraphRun]], steps: Steps) -> Divergence | None:
    """Where ranks first ran different graphs; None if they did not, or nothing was logged."""
    ran = zip_longest(*([run.compile_id for run in own] for own in runs.values()))
    found = next(((position, names) for position, names in enumerate(ran) if len(set(names)) > 1), None)
    if found is None:
        return None
    position, graphs = found[0], dict(zip(runs, found[1], strict=True))
    alike = {name: steps.expand(ranks) for name, ranks in group_by(graphs, lambda rank: graphs[rank]).items()}
    (name, others), (own, ranks), *more = sorted(alike.items(), key=lambda item: (-len(item[1]), item[1]))
    last = runs[ranks[0]][min(position, len(runs[ranks[0]]) - 1)].artifact
    own_run, other_run = (f"ran graph {graph}" if graph else "ran no more graph" for graph in (own, name))
    sentence = (
        f"{_name_ranks(ranks)} {own_run} as number {position + 1}; {_name_ranks(others)} {other_run}"
        + _count_groups(more)
    )
    return Divergence(
        kind="order",
        position=position,
        ranks=tuple(ranks),
        others=tuple(others),
        compile_id=own,
        time_ns=last.time_ns,
        value=own,
        other_value=name,
        evidence=get_ids([last]),
        sentence=sentence,
    )


# In words: what each rank did


def _locate(step: RankStep) -> str:
    """Which compile of which function, and when."""
    began = datetime.fromtimestamp(step.event.time_ns // 1_000_000_000, UTC)
    return f"{step.compile_id or 'an unknown id'} of {step.place}, {began:%H:%M:%S} UTC"


def _describe_cause(step: RankStep) -> str:
    """Why a rank compiled: the guard with both values, or that nothing was compiled before."""
    if step.recompile:
        return f"guard {_describe_guard(step.recompile)}"
    return "a backward" if step.trigger == "lazy_backward" else "a first compile"


def _describe_next(step: RankStep | None, known: str) -> str:
    """What a rank compiled next, and which values it had entries for."""
    had = f"had entries {known} and " if known else ""
    if step is None:
        return f"{had}compiled nothing more"
    why = f" ({_describe_cause(step)})" if step.recompile else ""
    return f"{had}continued with {step.compile_id or 'an unknown id'} of {step.place}{why}"


def _describe_known_values(steps: Sequence[RankStep], missed: RankStep | None) -> str:
    """The values of the guard that a rank has entries for: `0/0 for 4, 0/1 for 8`; "" if that is not known."""
    guard = missed.recompile if missed else None
    if missed is None or guard is None:
        return ""
    entries: dict[str, str] = {}
    for step in steps:
        row = step.recompile
        if row and step.target[1:4] == missed.target[1:4] and row.guard_source == guard.guard_source:
            if row.closest_compile_id and row.expected is not None:
                entries.setdefault(row.closest_compile_id, row.expected)
            if step.compile_id and row.actual is not None:
                entries[step.compile_id] = row.actual
    return ", ".join(f"{name} for {format_line(value, 40)}" for name, value in list(entries.items())[-4:])


def _describe_guard(row: Recompile) -> str:
    name = format_line(format_expression(row.guard_source or "") or row.guard_kind or "unknown", 80)
    if row.expected is None and row.actual is None:
        return name
    expected, actual = ("?" if v is None else format_line(v, 40) or "?" for v in (row.expected, row.actual))
    return f"{name} {expected} -> {actual}"


def _name_ranks(ranks: Sequence[int]) -> str:
    """`rank 3`, or `ranks 0, 1, 2, 3 and 60 more`."""
    if len(ranks) == 1:
        return f"rank {ranks[0]}"
    shown = ", ".join(str(rank) for rank in ranks[:4])
    return f"ranks {shown}" + (f" and {len(ranks) - 4} more" if len(ranks) > 4 else "")


def _count_groups(groups: Sequence[Any]) -> str:
    """How many groups of ranks differ beside the two that are described."""
    return (
        f" ({format_amount(len(groups), 'more group of ranks differs', 'more groups of ranks differ')} there)"
        if groups
        else ""
    )


#: Ranks, groups and compiles that the text shows.
SHOWN = 10
DTYPES = {
    **dict.fromkeys(("compile_s", "behind_s", "slowest_s", "median_s", "spread_s", "runtime_ms"), "float64"),
    **dict.fromkeys(("rank", "compiles", "recompiles", "graph_breaks", "order", "line", "slowest_rank"), "Int64"),
    **dict.fromkeys(("ranks", "missing", "differs", "others", "evidence"), "object"),
    "position": "Int64",
    "count": "Int64",
    "time": "datetime64[ns, UTC]",
}


class Ranks:
    """What ranks did alike and where they differ: `first`, `divergences`, `frame`, `groups`, `graphs`, `summary()`.

    Of a job that was read group by group, seconds are those of each rank, and all else is that of its group. If `data`
    is redacted, `whole` is the session without redaction, which decides the groups.
    """

    def __init__(self, data: Rows, is_live: bool = False, whole: Rows | None = None):
        self.steps = find_steps(data)
        order = find_order_divergence(find_graph_runs(data), self.steps)
        #: The last one is where the ranks first ran their graphs in another order.
        self.divergences = [*find_divergences(self.steps, is_live), *([order] if order else [])]
        self.rows = _make_rank_rows(self.steps, self.divergences)
        alike = _group_alike(data, self.steps) if whole is None else _group_alike(whole, find_steps(whole))
        self.group_rows = _make_groups(alike, self.steps, self.rows)
        self.graph_rows = make_graph_rows(self.steps, estimate_runtimes(data))

    @property
    def first(self) -> Divergence | None:
        """Where they first differ; None if they don't, or there are fewer than two ranks."""
        return self.divergences[0] if self.divergences else None

    @property
    def frame(self) -> pd.DataFrame:
        """One row per rank, the one that compiled longest first: rank, compiles, recompiles, graph_breaks, compile_s
        and behind_s (s), lookups (H hit, M miss, G guard miss, B bypass, - off, F failed), first_difference.
        """
        return _make_frame(self.rows, list_columns(RankRow))

    @property
    def groups(self) -> pd.DataFrame:
        """One row per group of ranks that compiled the same for the same reasons, the largest first: rank (the first of
        them), count, ranks, compiles, recompiles, graph_breaks, lookups, median_s, slowest_rank, slowest_s,
        difference (where that rank first differs from the first of the largest group).
        """
        return _make_frame(self.group_rows, list_columns(RankGroup))

    @property
    def graphs(self) -> pd.DataFrame:
        """One row per compile over all ranks, that with the slowest straggler first: order, compile_id, function, file,
        line, trigger, ranks, missing (ranks without it), differs, slowest_rank, slowest_s, median_s, spread_s (s),
        runtime_ms (what torch expects one run to take where it takes longest; NA if it did not log that).
        """
        return _make_frame(self.graph_rows, list_columns(GraphRow))

    @property
    def differences(self) -> pd.DataFrame:
        """One row per divergence, in order: see `Divergence`."""
        names = ["time" if f.name == "time_ns" else f.name for f in fields(Divergence)]
        return _make_frame(self.divergences, names)

    def __repr__(self) -> str:
        return f"<compilediag ranks: {self.steps.count} ranks, {len(self.divergences)} divergences>"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(self.summary())

    def summary(self) -> str:
        """Where they differ, and the stragglers, as plain text."""
        return f"{to_text(self._describe(), width=None)}\n"

    def _describe(self) -> Section:
        if self.steps.count < 2:
            return Section("compilediag: this session has fewer than two ranks.")
        head = (
            f"compilediag: {format_amount(self.steps.count, 'rank')}. {'First difference:' if self.first else _ALIKE}"
        )
        groups = self.group_rows if len(self.group_rows) < self.steps.count else []
        return Section(
            Section(head, Items([[one.sentence] for one in self.divergences], "indented")),
            _list_first("Groups of ranks that compiled the same, the largest first:", map(_describe_group, groups)),
            _list_first("Ranks, the one that compiled longest first:", map(_describe_rank, self.rows)),
            _list_first("Compiles, the slowest straggler first:", map(self._describe_graph, self.graph_rows)),
        )

    def _describe_graph(self, row: GraphRow) -> list[Block]:
        where = f"{row.compile_id or '?'} of {format_function(row.function, row.file, row.line)}"
        slow = "not timed"
        if row.slowest_s is not None and row.median_s is not None:
            slow = f"rank {row.slowest_rank} {format_seconds(row.slowest_s)}, median {format_seconds(row.median_s)}"
        missing, count = format_count(len(row.missing)), format_amount(self.steps.count, "rank")
        gaps = f"; not on {missing} of {count}" if row.missing else ""
        return [f"{where}: {slow}{gaps}" + (f"; differs: {', '.join(row.differs)}" if row.differs else "")]


_ALIKE = "All ranks compiled the same functions for the same reasons in the same order."


def _format_counts(row: RankRow | RankGroup) -> str:
    counts = {"compile": row.compiles, "recompile": row.recompiles, "graph break": row.graph_breaks}
    return ", ".join(format_amount(count, name) for name, count in counts.items())


def _describe_group(row: RankGroup) -> list[Block]:
    name = f"{format_amount(row.count, 'rank')} like rank {row.rank}" if row.count > 1 else f"rank {row.rank}"
    seconds = f"median {format_seconds(row.median_s)}, slowest {format_seconds(row.slowest_s)}"
    slowest = f" on rank {row.slowest_rank}" if row.count > 1 else ""
    line = f"{name}: {_format_counts(row)}, {seconds}{slowest}"
    return [line, row.difference] if row.difference else [line]


def _describe_rank(row: RankRow) -> list[Block]:
    caches = f", caches {row.lookups[:40]}" if row.lookups else ""
    return [f"rank {row.rank}: {format_seconds(row.compile_s)}, {_format_counts(row)}{caches}"]


def _list_first(title: str, items: Iterable[Sequence[Block]]) -> Section:
    """The first items below a title; nothing without items."""
    found = [*items]
    return Section(title, shorten_items(Items(found, "indented"), SHOWN)) if found else Section()


def _make_frame(rows: Sequence[Any], names: list[str]) -> pd.DataFrame:
    import pandas as pd

    columns: dict[str, pd.Series] = {}
    for name in names:
        values = [getattr(row, name) for row in rows]
        values = [list(value) if isinstance(value, tuple) else value for value in values]
        columns[name] = pd.Series(values, dtype=DTYPES.get(name, "string"))
    return pd.DataFrame(columns)


# Rows: one per rank, and one per compile over all ranks

#: Letters of a rank's lookups that are shown; a long run has thousands.
MOST_LETTERS = 200
_NOTHING: Mapping[str, float] = MappingProxyType({})


@dataclass(frozen=True)
class RankRow:
    """One rank. `behind_s`: seconds that it compiled longer than the median rank."""

    rank: int
    compiles: int
    recompiles: int
    graph_breaks: int
    compile_s: float
    behind_s: float
    lookups: str
    first_difference: str | None


@dataclass(frozen=True)
class GraphRow:
    """One compile over all ranks: the same id, function and trigger, the n-th time that the id is used.

    `ranks` have it, `missing` do not; `differs` names what is not the same on all that have it. `order` is its place in
    the order of most ranks. `spread_s`: seconds that the median rank is done before the slowest one; a rank that did
    not compile it is done at once. `runtime_ms`: what torch expects the graph to take on the rank where it takes
    longest, where it logged that. `steps` are those of the ranks that the session has rows of, `seconds` those of all
    ranks that have it.
    """

    order: int
    compile_id: str | None
    function: str | None
    file: str | None
    line: int | None
    trigger: str | None
    ranks: list[int]
    missing: list[int]
    differs: list[str]
    slowest_rank: int | None
    slowest_s: float | None
    median_s: float | None
    spread_s: float | None
    runtime_ms: float | None
    steps: dict[int, RankStep]
    seconds: dict[int, float]


#: A step, and its position among the steps of its rank.
PlacedStep = tuple[int, RankStep]


def _make_rank_rows(steps: Steps, divergences: Sequence[Divergence]) -> list[RankRow]:
    """One row per rank, the one that compiled longest first."""
    spent = {rank: sum_seconds(steps.get_seconds(rank)) for rank in steps.like}
    median = statistics.median(spent.values()) if spent else 0.0
    first_differences: dict[int, str] = {}
    for one in divergences:
        kind = "diverged" if one.kind == "way" else one.kind.replace("_", " ")
        for rank in one.ranks:
            first_differences.setdefault(rank, f"{kind} at {one.compile_id}" if one.compile_id else kind)
    # What ranks that compiled the same have in common.
    shared: dict[int, dict[str, Any]] = {
        rank: {
            "compiles": len(own),
            "recompiles": sum(step.recompile is not None for step in own),
            "graph_breaks": sum(len(step.breaks) for step in own),
            "lookups": "".join(step.letters for step in own)[:MOST_LETTERS],
        }
        for rank, own in steps.items()
    }
    rows = [
        RankRow(
            rank=rank,
            compile_s=spent[rank],
            behind_s=spent[rank] - median,
            first_difference=first_differences.get(rank),
            **shared[like],
        )
        for rank, like in steps.like.items()
    ]
    return sorted(rows, key=lambda row: (-row.compile_s, row.rank))


def make_graph_rows(steps: Steps, runtimes: Mapping[str, float] = _NOTHING) -> list[GraphRow]:
    """One row per compile, the one with the slowest straggler first; `runtimes` is what `estimate_runtimes` gives."""
    alike: dict[tuple[object, ...], dict[int, PlacedStep]] = defaultdict(dict)
    places: dict[tuple[object, ...], list[int]] = defaultdict(list)
    for rank, own in steps.items():
        times: dict[tuple[object, ...], int] = defaultdict(int)
        for position, step in enumerate(own):
            key = (*step.target, times[step.target])
            times[step.target] += 1
            alike[key][rank] = position, step
            places[key] += [position] * len(steps.members[rank])
    ordered = sorted(alike, key=lambda key: (statistics.median(places[key]), -len(places[key]), str(key)))
    rows = [_make_graph_row(order, alike[key], steps, runtimes) for order, key in enumerate(ordered)]
    return sorted(rows, key=lambda row: (-(row.spread_s or 0.0), row.order))


def _make_graph_row(order: int, placed: dict[int, PlacedStep], steps: Steps, runtimes: Mapping[str, float]) -> GraphRow:
    own = {rank: step for rank, (_, step) in placed.items()}
    first = next(iter(own.values()))
    timed: dict[int, float] = {}
    for loaded, (position, step) in placed.items():
        for rank in steps.members[loaded]:
            seconds = step.duration_s if rank == loaded else steps.get_member_seconds(rank, position)
            if is_timed(seconds):
                timed[rank] = seconds
    timed = dict(sorted(timed.items()))
    slowest = max(timed, key=lambda rank: timed[rank], default=None)
    slowest_s = None if slowest is None else timed[slowest]
    expected = [runtimes[key] for step in own.values() if (key := step.event.compile_key or "") in runtimes]
    missing = steps.expand(rank for rank in steps if rank not in own)
    everywhere = [*timed.values(), *(0.0 for _ in missing)]
    return GraphRow(
        order=order,
        compile_id=first.compile_id,
        **make_place_fields(get_place(first.event)),
        trigger=first.trigger,
        ranks=steps.expand(own),
        missing=missing,
        differs=[kind for kind, one in ASPECTS.items() if len({one.get(step) for step in own.values()}) > 1],
        slowest_rank=slowest,
        slowest_s=slowest_s,
        median_s=statistics.median(timed.values()) if timed else None,
        spread_s=None if slowest_s is None else slowest_s - statistics.median(everywhere),
        runtime_ms=max(expected, default=None),
        steps=own,
        seconds=timed,
    )


def list_columns(cls: type[Any]) -> list[str]:
    """The columns of rows of a kind: the fields that are cells."""
    return [f.name for f in fields(cls) if f.name not in ("steps", "seconds")]


# Groups of ranks that compiled the same, for the same reasons, in the same order

#: Groups that are compared with the largest one.
MOST_COMPARED = 64


@dataclass(frozen=True)
class RankGroup:
    """Ranks that compiled the same. `rank` is the first of them, whose rows the session has; all numbers of seconds
    are computed from all ranks of the group. `difference` is where that rank first differs from the first of the
    largest group.
    """

    rank: int
    count: int
    ranks: list[int]
    compiles: int
    recompiles: int
    graph_breaks: int
    lookups: str
    median_s: float
    slowest_rank: int
    slowest_s: float
    difference: str | None


def _group_alike(data: Rows, steps: Steps) -> list[list[int]]:
    """Return the groups of ranks that the session has rows of and that compiled the same, the largest group first."""
    runs = find_graph_runs(data)
    alike: dict[str, list[int]] = defaultdict(list)
    for rank, own in steps.items():
        alike[digest_steps(own, (run.compile_id for run in runs.get(rank, ())))].append(rank)
    return sorted(alike.values(), key=lambda loaded: (-len(steps.expand(loaded)), loaded))


def _make_groups(alike: Sequence[Sequence[int]], steps: Steps, rows: Sequence[RankRow]) -> list[RankGroup]:
    """One row per group of ranks that compiled the same, each given by those that the session has rows of."""
    by_rank = {row.rank: row for row in rows}
    groups = []
    for number, loaded in enumerate(alike):
        own = [by_rank[rank] for rank in steps.expand(loaded)]
        first, slowest = own[0], max(own, key=lambda row: row.compile_s)
        is_compared = 0 < number < MOST_COMPARED
        found = find_divergences(steps.select((alike[0][0], loaded[0]))) if is_compared else []
        groups.append(
            RankGroup(
                rank=first.rank,
                count=len(own),
                ranks=[row.rank for row in own],
                compiles=first.compiles,
                recompiles=first.recompiles,
                graph_breaks=first.graph_breaks,
                lookups=first.lookups,
                median_s=statistics.median(row.compile_s for row in own),
                slowest_rank=slowest.rank,
                slowest_s=slowest.compile_s,
                difference=found[0].sentence if found else None,
            )
        )
    return groups
