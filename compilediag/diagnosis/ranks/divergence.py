"""The ranks of a distributed job, told against each other: where they first went different ways, and at what.

All ranks of a job run one program, so that their compiles come in one order, each for the same reason. What a rank
compiled is its sequence of *steps*, in order of time; the ranks are walked through step by step. A call that fits
what is compiled leaves no trace, so a rank that lacks a step either had an entry that fit, or did not make the call.
Clocks of ranks need not agree: only the order within a rank counts. Pure: tables in, numbers and sentences out.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from .. import wording
from ..rows import Row, compile_key, rows_of
from ..rules.lookup_groups import COMPILE_CACHES
from . import rank_words as words
from .rank_runs import first_other_run, runs
from .rank_words import GRAPH

#: What became of a look-up -> its letter in a rank's sequence.
LETTERS = {"hit": "H", "miss": "M", "guard_miss": "G", "bypass": "B", "disabled": "-", "failed": "F"}
#: What differs from process to process and says nothing: addresses, and which of the like devices a rank has.
_OWN = (re.compile(r"\b0x[0-9a-fA-F]+"), re.compile(r"\b(cuda|xpu|hpu|mps|npu):\d+"))

#: What is around the name of a collective: `torch.ops._c10d_functional.all_reduce_.default`.
_OPERATOR = re.compile(r"^torch\.ops\.\w+\.|\.default$")
#: Clocks of a compile and of its recompile are read apart.
SLACK_NS = 1_000_000

_COMPILE = ("function", "file", "line", "trigger", "outcome", "duration_s", "fail_type", "fail_reason", "limit")
_RECOMPILE = ("function", "file", "line", "closest_compile_id", "guard_source", "guard_kind", "expected", "actual")


@dataclass
class Step:
    """One compile of one rank, with all that is compared of it."""

    rank: int
    row: Row
    recompile: Row | None
    caches: tuple[tuple[str, str, str], ...] = ()
    breaks: tuple[str, ...] = ()
    collectives: tuple[str, ...] = ()

    @property
    def compile_id(self) -> str | None:
        return self.row["compile_id"]

    @property
    def place(self) -> str:
        return wording.place(self.row["function"], self.row["file"], self.row["line"])

    @property
    def way(self) -> tuple[Any, ...]:
        """What is compiled: the same on every rank that runs the same program."""
        file = wording.basename(self.row["file"]) if self.row["file"] else None
        return (self.compile_id, self.row["function"], file, self.row["line"], self.row["trigger"])

    @property
    def guard(self) -> tuple[Any, ...]:
        """What was guarded and did not fit, the value that was compiled for and the one that came."""
        found = self.recompile or {}
        return tuple(_common(found.get(name)) for name in ("guard_source", "guard_kind", "expected", "actual"))

    @property
    def letters(self) -> str:
        return "".join(LETTERS.get(outcome, "?") for _, _, outcome in self.caches)

    @property
    def event_id(self) -> int:
        return int(self.row["event_id"])

    @property
    def evidence(self) -> tuple[int, ...]:
        """Its recompile, if it is one, and its compile."""
        told = [row for row in (self.recompile, self.row) if row is not None]
        return tuple(dict.fromkeys(int(row["event_id"]) for row in told))


@dataclass(frozen=True)
class Divergence:
    """A step at which ranks differ. `ranks` are those that differ from the `others`, which are more, or as many.

    `kind`: way (they compile something else, or nothing), guard, outcome, graph_breaks, collectives, graph, caches, or
    order (they ran compiled graphs in another order, where torch logged that; `position` is then that of the run).
    `value` and `other_value` are what the guard met, or what the caches answered, on either side, None if nothing is
    known. `time` is that of the differing rank.
    """

    kind: str
    position: int
    ranks: tuple[int, ...]
    others: tuple[int, ...]
    compile_id: str | None
    function: str | None
    file: str | None
    line: int | None
    time: Any
    guard_source: str | None
    value: str | None
    other_value: str | None
    evidence: tuple[int, ...]
    sentence: str


#: What is compared of a step that all ranks have, the weightiest first.
ASPECTS: dict[str, Callable[[Step], Any]] = {
    "guard": lambda step: step.guard,
    "outcome": lambda step: (step.row["outcome"], step.row["fail_type"], step.row["limit"]),
    "graph_breaks": lambda step: step.breaks,
    "collectives": lambda step: step.collectives,
    "graph": lambda step: tuple(step.row[name] for name in GRAPH),
    "caches": lambda step: step.caches,
}


def sequences(tables: Any) -> dict[int, list[Step]]:
    """rank -> its steps in order of time, of the ranks that recorded anything; {} where nothing has a rank."""
    compiles = rows_of(tables, "compiles", (*_COMPILE, *GRAPH))
    recompiles = rows_of(tables, "recompiles", _RECOMPILE)
    causes: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for row in recompiles:
        causes[compile_key(row)].append(row)
    found: dict[int, list[Step]] = {rank: [] for rank in ranks_of(tables)}
    for row in compiles:
        if row["rank"] is not None:
            waiting = causes[compile_key(row)]
            # A backward has the id of its forward; ids are used again after a reset.
            cause = waiting.pop(0) if waiting and row["trigger"] != "lazy_backward" and _is_near(waiting, row) else None
            found[int(row["rank"])].append(Step(int(row["rank"]), row, cause))
    unfinished = [row for rows in causes.values() for row in rows if row["rank"] is not None]
    for row in unfinished:
        told = {**dict.fromkeys((*_COMPILE, *GRAPH)), **row, "trigger": "dynamo"}
        found[int(row["rank"])].append(Step(int(row["rank"]), told, row))
    for steps in found.values():
        steps.sort(key=lambda step: (step.row["time"], step.event_id))
    _add_details(tables, found)
    return found


def ranks_of(tables: Any) -> list[int]:
    """The ranks that recorded anything, in order."""
    seen: set[int] = set()
    # A rank that compiled nothing at all has its sources.
    for name in ("compiles", "recompiles", "cache_lookups", "graph_breaks", "phases", "sources"):
        frame = getattr(tables, name, None)
        if frame is not None and len(frame) and "rank" in frame:
            seen.update(int(rank) for rank in frame["rank"].dropna().unique())
    return sorted(seen)


def divergences(steps: dict[int, list[Step]], live: bool = False) -> list[Divergence]:
    """Where the ranks first differ in each kind, in order; what comes after they went different ways is not compared.

    `live`: they still run, and a rank that has no step yet may come to it.
    """
    if len(steps) < 2:
        return []
    found: dict[str, Divergence] = {}
    for position in range(max(len(own) for own in steps.values())):
        here = {rank: own[position] if position < len(own) else None for rank, own in steps.items()}
        if live and None in here.values():
            break
        groups = _groups(here, lambda step: step.way)
        if len(groups) > 1:
            found["way"] = _way(position, groups, here, steps)
            break
        for kind, aspect in ASPECTS.items():
            groups = _groups(here, aspect)
            if len(groups) > 1 and kind not in found:
                found[kind] = _difference(kind, position, groups, here)
    return sorted(found.values(), key=lambda one: (one.position, ["way", *ASPECTS].index(one.kind)))


def all_divergences(tables: Any, steps: dict[int, list[Step]], live: bool = False) -> list[Divergence]:
    """As `divergences`, and last where they first ran their graphs in another order."""
    order = order_divergence(runs(tables))
    return [*divergences(steps, live), *([order] if order else [])]


def order_divergence(found: dict[int, list[tuple[str, Row]]]) -> Divergence | None:
    """Where ranks first ran different graphs; `found` is what `rank_runs.runs` gives."""
    other = first_other_run(found) if len(found) > 1 else None
    if other is None:
        return None
    position, names = other
    alike: dict[str | None, list[int]] = defaultdict(list)
    for rank, name in names.items():
        alike[name].append(rank)
    (name, others), (own, ranks), *more = sorted(alike.items(), key=lambda item: (-len(item[1]), item[1]))
    _, row = found[ranks[0]][min(position, len(found[ranks[0]]) - 1)]
    ran = [f"ran graph {each}" if each is not None else "ran no more graph" for each in (own, name)]
    sentence = (
        f"{words.named(ranks)} {ran[0]} as number {position + 1}; {words.named(others)} {ran[1]}"
        + words.more_groups(more)
    )
    where = {"function": None, "file": None, "line": None, "guard_source": None, "time": row["time"]}
    return Divergence(
        kind="order",
        position=position,
        ranks=tuple(ranks),
        others=tuple(others),
        compile_id=own,
        value=own,
        other_value=name,
        evidence=(int(row["event_id"]),),
        sentence=sentence,
        **where,
    )


def _is_near(waiting: list[Row], row: Row) -> bool:
    """True if the recompile that waits first began before this compile ended: of ids that are used again after a reset,
    the first compile has none.
    """
    ends = row["time"].value + (row["duration_s"] or 0) * 1e9
    return waiting[0]["time"].value <= ends + SLACK_NS


def _add_details(tables: Any, steps: dict[int, list[Step]]) -> None:
    """Look-ups, graph breaks and collectives of each step: those of its id that came before the next of that id."""
    by_id: dict[tuple[Any, ...], list[Step]] = defaultdict(list)
    for step in (step for own in steps.values() for step in own):
        by_id[compile_key(step.row)].append(step)
    lookups = rows_of(tables, "cache_lookups", ("cache", "tier", "action", "outcome"))
    asked = [row for row in lookups if row["cache"] in COMPILE_CACHES and row["action"] in (None, "look_up")]
    for step, row in _owned(by_id, asked):
        step.caches += ((row["cache"], row["tier"] or "", row["outcome"] or "?"),)
    for step, row in _owned(by_id, rows_of(tables, "graph_breaks", ("reason", "user_line"))):
        step.breaks += (f"{wording.first_line(row['reason'] or '?')} (line {row['user_line']})",)
    for step, row in _owned(by_id, rows_of(tables, "collectives", ("position", "op"))):
        step.collectives += (_OPERATOR.sub("", row["op"] or "?"),)


def _owned(by_id: dict[tuple[Any, ...], list[Step]], rows: Iterable[Row]) -> Iterable[tuple[Step, Row]]:
    for row in rows:
        steps = by_id.get(compile_key(row), [])
        begun = [step for step in steps if step.row["time"] <= row["time"]]
        if steps:
            yield (begun or steps[:1])[-1], row


def _groups(here: dict[int, Step | None], aspect: Callable[[Step], Any]) -> list[list[int]]:
    """The ranks that are alike, the most first; of as many those without a recompile, then the lower ones."""
    alike: dict[Any, list[int]] = defaultdict(list)
    for rank, step in here.items():
        alike[None if step is None else (aspect(step),)].append(rank)

    def order(group: list[int]) -> tuple[Any, ...]:
        step = here[group[0]]
        return (-len(group), step is not None and step.recompile is not None, group)

    return sorted(alike.values(), key=order)


def _common(value: Any) -> Any:
    if isinstance(value, str):
        for own in _OWN:
            value = own.sub(lambda found: f"{found[1]}:*" if found.lastindex else "0x*", value)
    return value


# Sentences


def _way(
    position: int, groups: list[list[int]], here: dict[int, Step | None], steps: dict[int, list[Step]]
) -> Divergence:
    others, ranks = groups[0], groups[1]
    step, other = here[ranks[0]], here[others[0]]
    before = steps[ranks[0]][position - 1] if position else None
    if step is not None and other is not None and _lacks(steps[ranks[0]], steps[others[0]], position):
        return _left_out(position, groups, step, other, words.known_values(steps[ranks[0]][:position], other))
    last = next(found for found in (step, before, other) if found is not None)
    if step is None:
        told = f"{words.named(ranks)} compiled nothing" + (f" more after {words.where(last)}" if position else "")
    else:
        told = f"{words.named(ranks)} went another way at {words.where(last)}: {words.did(step)}"
    known = words.known_values(steps[others[0]][:position], step)
    values = (step and step.recompile or {}).get("actual"), known or (other and other.recompile or {}).get("actual")
    sentence = f"{told}; {words.named(others)} {words.instead(other, step, known)}"
    return _made("way", position, groups, last, sentence, values, [step, other])


def _lacks(own: list[Step], usual: list[Step], position: int) -> bool:
    """True if a rank left out what the others compile here: it goes on with what they come to later."""
    to_come = {step.way for step in usual[position:]}
    return own[position].way in to_come and usual[position].way not in {step.way for step in own[position:]}


def _left_out(position: int, groups: list[list[int]], step: Step, other: Step, known: str) -> Divergence:
    ranks, others = words.named(groups[1]), words.named(groups[0])
    sentence = f"{ranks} did not compile {words.where(other)}: {words.did(other)} on {others}; {ranks} "
    sentence += words.went_on(step, known)
    values = known or None, (other.recompile or {}).get("actual")
    return _made("way", position, groups, other, sentence, values, [other, step])


def _difference(kind: str, position: int, groups: list[list[int]], here: dict[int, Step | None]) -> Divergence:
    others, ranks = groups[0], groups[1]
    step, other = here[ranks[0]], here[others[0]]
    own, usual = words.collectives(step, other) if kind == "collectives" else words.told(kind, step, other)
    sentence = f"{words.named(ranks)} {_OTHERWISE[kind]} at {words.where(step)}: {own}; {words.named(others)}: {usual}"
    return _made(kind, position, groups, step, sentence, (own, usual), [step, other])


_OTHERWISE = {
    "guard": "recompiled for another reason",
    "outcome": "had another outcome",
    "graph_breaks": "had other graph breaks",
    "collectives": "had other collectives, or in another order,",
    "graph": "compiled another graph",
    "caches": "got other answers from the caches",
}


def _made(
    kind: str,
    position: int,
    groups: list[list[int]],
    step: Step,
    sentence: str,
    values: tuple[str | None, str | None],
    evidence: list[Step | None],
) -> Divergence:
    return Divergence(
        kind=kind,
        position=position,
        ranks=tuple(groups[1]),
        others=tuple(groups[0]),
        compile_id=step.compile_id,
        function=step.row["function"],
        file=step.row["file"],
        line=step.row["line"],
        time=step.row["time"],
        guard_source=(step.recompile or {}).get("guard_source"),
        value=values[0] or None,
        other_value=values[1] or None,
        evidence=tuple(event for each in evidence if each is not None for event in each.evidence),
        sentence=sentence + words.more_groups(groups[2:]),
    )
