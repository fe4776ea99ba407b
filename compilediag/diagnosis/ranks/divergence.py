"""Where the ranks of a distributed job first differ, and in what.

All ranks of a job run one program, so their compiles come in one order, each for the same reason. The ranks are walked
through step by step. A call that fits what is compiled leaves no trace, so a rank that lacks a step either had an entry
that fit, or did not make the call.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from ...decode.guards.path import format_expression
from ...decode.rank_steps import GraphRun, RankStep, Steps, find_graph_runs
from ...events import Recompile, Rows
from ...formatting import format_amount, format_line, format_names
from ..evidence import group_by

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
    compile_id: str | None
    function: str | None
    file: str | None
    line: int | None
    time_ns: int
    guard_source: str | None
    value: str | None
    other_value: str | None
    evidence: tuple[int, ...]
    sentence: str

    @property
    def time(self) -> pd.Timestamp:
        """When the step began on the differing rank, in UTC."""
        import pandas as pd

        return pd.Timestamp(self.time_ns, tz="UTC")


#: What is compared of a step that all ranks have, the most important first.
ASPECTS: dict[str, Callable[[RankStep], Hashable]] = {
    "guard": lambda step: step.guard,
    "outcome": lambda step: step.outcome,
    "graph_breaks": lambda step: step.breaks,
    "collectives": lambda step: step.collectives,
    "graph": lambda step: step.graph,
    "caches": lambda step: step.caches,
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
            groups = _group_ranks(here, aspect, steps)
            if len(groups) > 1 and kind not in found:
                found[kind] = _compare_aspect(kind, position, groups, here)
    return sorted(found.values(), key=lambda one: (one.position, ["way", *ASPECTS].index(one.kind)))


def find_all_divergences(data: Rows, steps: Steps, is_live: bool = False) -> list[Divergence]:
    """As `find_divergences`, and last where the ranks first ran their graphs in another order."""
    order = find_order_divergence(find_graph_runs(data), steps)
    return [*find_divergences(steps, is_live), *([order] if order else [])]


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
    if step is not None and other is not None and _skips_step(own, usual, position):
        return _report_skipped(position, groups, step, other, _describe_known_values(own[:position], other))
    before = own[position - 1] if position else None
    last = next(found for found in (step, before, other) if found is not None)
    known = _describe_known_values(usual[:position], step)
    if step is None:
        event = f"compiled nothing{f' more after {_locate(last)}' if position else ''}"
    else:
        event = f"diverged at {_locate(last)}: {_describe_cause(step)}"
    instead = _describe_instead(other, step, known)
    sentence = f"{_name_ranks(ranks)} {event}; {_name_ranks(others)} {instead}"
    values = _get_actual(step), known or _get_actual(other)
    return _make_divergence("way", position, groups, last, sentence, values, [step, other])


def _get_actual(step: RankStep | None) -> str | None:
    return step.recompile.actual if step and step.recompile else None


def _skips_step(own: list[RankStep], usual: list[RankStep], position: int) -> bool:
    """True if a rank left out what the others compile here: it goes on with what they come to later."""
    to_come = {step.target for step in usual[position:]}
    return own[position].target in to_come and usual[position].target not in {step.target for step in own[position:]}


def _report_skipped(position: int, groups: list[list[int]], step: RankStep, other: RankStep, known: str) -> Divergence:
    ranks, others = _name_ranks(groups[1]), _name_ranks(groups[0])
    sentence = (
        f"{ranks} did not compile {_locate(other)}: {_describe_cause(other)} on {others}; "
        f"{ranks} {_describe_next(step, known)}"
    )
    return _make_divergence("way", position, groups, other, sentence, (known, _get_actual(other)), [other, step])


_OTHERWISE = {
    "guard": "recompiled for a different reason",
    "outcome": "had a different outcome",
    "graph_breaks": "had different graph breaks",
    "collectives": "had different collectives",
    "graph": "compiled a different graph",
    "caches": "had different cache results",
}


def _compare_aspect(kind: str, position: int, groups: list[list[int]], here: StepsAt) -> Divergence:
    """Ranks that compile the same function in another way."""
    others, ranks = groups[0], groups[1]
    step, other = here[ranks[0]], here[others[0]]
    assert step is not None and other is not None, "ranks without a step differ in their target"
    own, usual = _describe_aspect(kind, step, other)
    event = f"{_OTHERWISE[kind]} at {_locate(step)}: {own}"
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
        function=step.event.function,
        file=step.event.file,
        line=step.event.line,
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
    found = _find_other_run(runs) if len(runs) > 1 else None
    if found is None:
        return None
    position, graphs = found
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
        function=None,
        file=None,
        line=None,
        time_ns=last.time_ns,
        guard_source=None,
        value=own,
        other_value=name,
        evidence=() if last.event_id is None else (last.event_id,),
        sentence=sentence,
    )


def _find_other_run(runs: dict[int, list[GraphRun]]) -> tuple[int, dict[int, str | None]] | None:
    """Position and rank -> the graph that it ran there (None if it ran no more) where ranks first ran other graphs."""
    graphs = [[run.compile_id for run in own] for own in runs.values()]
    for position, names in enumerate(zip_longest(*graphs)):
        if len(set(names)) > 1:
            return position, dict(zip(runs, names, strict=True))
    return None


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


def _describe_instead(other: RankStep | None, step: RankStep | None, known: str) -> str:
    """What the others did meanwhile."""
    if other is not None and step is not None and other.target[1:] == step.target[1:]:
        return f"compiled it as {other.compile_id}: {_describe_cause(other)}"
    return _describe_next(other, known)


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


def _describe_aspect(kind: str, step: RankStep, other: RankStep) -> tuple[str, str]:
    """What two ranks have of the aspect in which they differ."""
    if kind == "collectives":
        return _describe_collectives(step, other)
    describe = _DESCRIPTIONS[kind]
    return describe(step), describe(other)


def _describe_step_guard(step: RankStep) -> str:
    return f"guard {_describe_guard(step.recompile)}" if step.recompile else "no recompile"


def _describe_outcome(step: RankStep) -> str:
    return ", ".join(filter(None, step.outcome)) or "unknown"


def _describe_breaks(step: RankStep) -> str:
    return format_names(step.breaks) if step.breaks else "no graph break"


def _describe_graph(step: RankStep) -> str:
    counts = zip(step.graph, ("calls", "nodes", "inputs"), strict=True)
    return ", ".join(f"{count} {name}" for count, name in counts if count is not None)


def _describe_caches(step: RankStep) -> str:
    counts = Counter(f"{cache}{' remote' if tier == 'remote' else ''} {end}" for cache, tier, end in step.caches)
    return ", ".join(f"{what}{f' {n}x' if n > 1 else ''}" for what, n in counts.items()) or "no lookup"


_DESCRIPTIONS = {
    "guard": _describe_step_guard,
    "outcome": _describe_outcome,
    "graph_breaks": _describe_breaks,
    "graph": _describe_graph,
    "caches": _describe_caches,
}


def _describe_collectives(step: RankStep, other: RankStep) -> tuple[str, str]:
    """The first collectives that two ranks do not have in common."""
    pairs = enumerate(zip_longest(step.collectives, other.collectives), 1)
    number, (own, usual) = next((number, ops) for number, ops in pairs if ops[0] != ops[1])
    return f"number {number} is {own or 'no more'}", usual or "no more"


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
