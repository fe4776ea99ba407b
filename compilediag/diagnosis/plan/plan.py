"""The plan: its steps and what they save, also as a document, a block of code, a patch and plain JSON values; and what
trying it showed.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from ...document import WIDTH, Block, Code, CodeBlock, Items, Para, Place, Section, to_html, to_text
from ...formatting import (
    SHOWN_VALUES,
    escape_controls,
    escape_lines,
    format_amount,
    format_line,
    format_place,
    format_seconds,
    format_times,
)
from ...json_document import read_plain, to_plain
from ..change import Edit, Settings, format_settings
from ..finding import Finding
from ..rules.costs import CompileCost, find_cost_kind
from .changed_sources import ChangedSource, list_changed_sources, make_patch
from .plan_step import PlanStep
from .specs import DynamicSpec

#: A cost is the headline from this share of the compile time on.
_WORTH_NAMING = 0.1


@dataclass(frozen=True)
class UnresolvedCause:
    """What no step of the plan resolves, and why. `evidence` holds the event ids of its recompiles."""

    what: str
    reason: str
    place: str
    evidence: tuple[int, ...]


@dataclass(frozen=True)
class Plan:
    """The smallest set of changes that saves the most compile seconds.

    `recompiles` and `seconds` (s) are those of the session: its recompiles, and the time of all its compiles.
    `settings` is the configuration of all steps, merged. `tried` is the outcome of running the program with the plan,
    as plain values; None if it was not tried. `searched` is that of a search for a change (`compilediag fix`), which
    need not be the plan's. `notes` are sentences about the plan as a whole. `costs` say where
    compile time goes even if nothing recompiles: what the next process repeats first, then what can be saved.
    `specs` are specifications of torch.compile's arguments, each of which can replace some of the steps.
    `is_collected` is false if recompiles were not collected, or not all the time. `is_own` is true if this process
    recorded the session: `patch()` then reads the program's files in any folder, otherwise only in the current one.
    """

    steps: tuple[PlanStep, ...] = ()
    recompiles: int = 0
    recompiles_saved: int = 0
    seconds: float = 0.0
    seconds_saved: float = 0.0
    settings: Settings = field(default_factory=dict)
    unresolved: tuple[UnresolvedCause, ...] = ()
    tried: Mapping[str, Any] | None = None
    searched: Mapping[str, Any] | None = None
    notes: tuple[str, ...] = ()
    costs: tuple[CompileCost, ...] = ()
    is_collected: bool = True
    is_own: bool = False
    specs: tuple[DynamicSpec, ...] = ()

    @property
    def headline(self) -> str:
        """What the plan saves, in one line: measured, if it was tried; or its largest cost, if that is more."""
        if (measured := self._describe_measured()) is not None:
            return measured
        cost = self.leading_cost
        if cost is not None:
            return cost.headline
        if not self.recompiles:
            return "Nothing recompiled" if self.is_collected else "Recompiles were not collected"
        if not self.steps:
            return f"No change removes any of {format_amount(self.recompiles, 'recompile')}"
        changes = format_amount(len(self.steps), "change")
        verbs = ("removes", "saves") if len(self.steps) == 1 else ("remove", "save")
        removed = f"{verbs[0]} {self.recompiles_saved} of {format_amount(self.recompiles, 'recompile')}"
        if not self.seconds_saved:
            return f"{changes} {removed}"
        seconds = f"{format_seconds(self.seconds_saved)} of {format_seconds(self.seconds)} compile time"
        return f"{changes} {removed} and {verbs[1]} {seconds}"

    def _describe_measured(self) -> str | None:
        """What runs have shown, in one line; None if none has."""
        found = self.measured
        if found is None:
            return None
        lines = found.get("lines")
        changes = format_amount(lines, "changed line") if lines else format_amount(len(self.steps), "change")
        s = "s" if changes.startswith("1 ") else ""
        before, after = found["recompiles_before"], found["recompiles_after"]
        text = f"{changes} remove{s} {max(0, before - after)} of {format_amount(before, 'recompile')}"
        first, last = (found.get(f"compile_seconds_{when}") or 0.0 for when in ("before", "after"))
        if found.get("backend") is not None or not last or first <= last:
            return text
        return f"{text} and save{s} {format_seconds(first - last)} of {format_seconds(first)} compile time"

    @property
    def measured(self) -> Mapping[str, Any] | None:
        """What runs have measured, as plain values: of a change that a search has proven, or of the plan."""
        found = [outcome for outcome in (self.searched, self.tried) if outcome is not None]
        known = (one for one in found if None not in (one.get("recompiles_before"), one.get("recompiles_after")))
        return next((one for one in known if one is self.tried or one.get("holds")), None)

    @property
    def leading_cost(self) -> CompileCost | None:
        """The largest cost that a change saves, if that is more than the steps save and a tenth of the compile time; if
        there is none and no step, one of each call.
        """
        # What identical blocks and iterations take is in part the time of the recompiles.
        repeated = ("repeated_blocks", "unrolled_loop") if self.steps else ()
        found = [cost for cost in self.costs if cost.headline and cost.kind not in repeated]
        most = max(found, key=lambda cost: cost.seconds, default=None)
        least = max(self.seconds_saved, self.seconds * _WORTH_NAMING)
        if most is not None and least < most.seconds <= self.seconds:
            return most
        return None if self.steps else next((cost for cost in found if not cost.seconds), None)

    @property
    def gains(self) -> tuple[tuple[int, float], ...]:
        """What each step saves beside those before it: recompiles, and s."""
        saved = [(0, 0.0), *((step.recompiles_saved, step.seconds_saved) for step in self.steps)]
        return tuple((after[0] - before[0], after[1] - before[1]) for before, after in pairwise(saved))

    @property
    def is_prediction(self) -> bool:
        """True if no run has shown yet what the steps do."""
        return bool(self.steps) and self.tried is None and self.searched is None

    def find_step(self, finding: Finding) -> int | None:
        """The number, from 1, of the step for the cause of a finding; None if there is none.

        Args:
            finding: one of `session.findings()`.
        """
        return next((number for number, step in enumerate(self.steps, 1) if step.resolves(finding)), None)

    def has_cost(self, finding: Finding) -> bool:
        """True if a finding is one of the costs.

        Args:
            finding: one of `session.findings()`.
        """
        kind = find_cost_kind(finding.rule)
        return any(cost.kind == kind and set(finding.evidence) <= set(cost.evidence) for cost in self.costs)

    def code(self) -> str:
        """The block to paste: the lines of each step with their place, then the settings, each assigned once."""
        blocks = [block for step in self.steps if (block := _format_step_code(step))]
        if self.settings:
            blocks.append(f"# Once, before the first compiled call:\n{format_settings(self.settings)}")
        return escape_lines("\n".join(blocks))

    def patch(self) -> str | None:
        """The plan as a unified diff of your files, and of the cells of this notebook; None if they were changed since,
        or a step needs a person.
        """
        return make_patch(list_changed_sources(self.steps, self.settings, self.is_own))

    def changed_sources(self) -> tuple[ChangedSource, ...]:
        """The files and cells that are changed, as lines of a diff with the number of their step: by what a search has
        proven, if there is that, else by the steps.
        """
        proven = str(self.searched.get("patch") or "") if self.searched else ""
        return list_changed_sources(self.steps, self.settings, self.is_own, proven)

    def to_dict(self) -> dict[str, Any]:
        """The plan as plain JSON values."""
        return {
            "headline": self.headline,
            "leads": self.leading_cost.kind if self.leading_cost is not None else None,
            "steps": [
                {**step.to_dict(), "recompiles_gained": recompiles, "seconds_gained": seconds}
                for step, (recompiles, seconds) in zip(self.steps, self.gains, strict=True)
            ],
            "recompiles": self.recompiles,
            "recompiles_saved": self.recompiles_saved,
            "seconds": self.seconds,
            "seconds_saved": self.seconds_saved,
            "settings": dict(self.settings),
            "settings_code": format_settings(self.settings),
            "code": self.code(),
            "unresolved": to_plain(self.unresolved),
            "tried": None if self.tried is None else dict(self.tried),
            "searched": None if self.searched is None else dict(self.searched),
            "notes": [*self.notes],
            "costs": [cost.to_dict() for cost in self.costs],
            "specs": [spec.to_dict() for spec in self.specs],
        }

    def __str__(self) -> str:
        return to_text(describe_plan(self))

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(str(self))

    def _repr_html_(self) -> str:
        return to_html(describe_plan(self, with_code=True))


# The document

#: Where the items are that a list leaves out.
_IN_PLAN = (" in ", Code("session.plan()"))


def describe_plan(plan: Plan, with_code: bool = False) -> Section:
    """The plan as a document. `with_code`: with the whole change, as a patch or as the block to paste; otherwise with
    all settings, if there are several steps.
    """
    blocks: list[Block] = [Para(plan.headline, strong=with_code)]
    if plan.tried:
        blocks.append(str(plan.tried["text"]))
    if plan.searched:
        blocks.append(read_plain(SearchOutcome, plan.searched).describe())
    blocks.append(Items([_describe_step(step) for step in plan.steps], "numbered", _IN_PLAN))
    if plan.is_prediction:
        blocks.append(Para("A prediction; ", Code("compilediag fix"), " finds a change that runs have proven."))
    if with_code and plan.steps and not plan.searched:
        patch = plan.patch()
        whole = CodeBlock((patch or "").rstrip("\n"), "The whole change:", "print(session.plan().patch())")
        block = CodeBlock(plan.code(), "The block to paste:", "print(session.plan().code())")
        blocks.append(whole if patch else block)
    elif plan.settings and len(plan.steps) > 1:
        blocks.append(CodeBlock(format_settings(plan.settings), "All settings together:"))
    blocks.append(Items([[CodeBlock(spec.change.code, spec.title)] for spec in plan.specs], "plain", _IN_PLAN))
    if plan.unresolved:
        blocks += ["Not resolved:", Items([[_describe_cause(cause)] for cause in plan.unresolved], rest=_IN_PLAN)]
    for title, is_timed in (("Where compile time goes:", True), ("At each call:", False)):
        costs = [_describe_cost(cost) for cost in plan.costs if bool(cost.seconds) is is_timed]
        blocks += [title, Items(costs, rest=_IN_PLAN)] if costs else []
    return Section(*blocks, Items([[note] for note in plan.notes], "plain", _IN_PLAN))


def _describe_step(step: PlanStep) -> list[Block]:
    """The cause with its values, the user's line, the change, and what it saves."""
    code = format_line(step.code or "", 80)
    where = Para(Place(step.place), ": " if step.place and code else "", Code(code))
    change = CodeBlock(step.change) if step.can_be_applied else step.change
    return [_describe_cause_of(step), where if step.place or code else "place not known", change, step.saving]


def _describe_cause_of(step: PlanStep) -> str:
    """ "`ids` comes in 3 shapes: (4, 16), (6, 16), (6, 24)." """
    shown = [format_line(value, 40) for value in step.title_values[:SHOWN_VALUES]]
    more = ", ..." if len(step.title_values) > len(shown) else ""
    values = f"{', '.join(shown)}{more}" or (step.what if step.what != step.title else "")
    title = f"{step.title}: {values}" if step.title and values else step.title or step.what
    return f"{title} ({step.origin})." if step.origin and step.origin not in title else f"{title}."


def _describe_cause(cause: UnresolvedCause) -> Para:
    reason = f" ({format_times(len(cause.evidence))}): {cause.reason}" if cause.reason else ""
    what = f"{cause.what}{reason}"
    return Para(Place(cause.place), ": ", what) if cause.place else Para(what)


def _describe_cost(cost: CompileCost) -> list[Block]:
    """What it costs, the code to paste and the advice. The details only say where the time went: `to_dict` has them."""
    return [f"{cost.what}.", *([CodeBlock(cost.code)] if cost.code else []), cost.advice]


# The block to paste

_VERBS = {"insert_before": "before", "replace": "instead of"}


def _describe_edit(edit: Edit) -> str:
    """``train.py:7, instead of `k` in `step(x, k)` ``"""
    where = f" in `{format_line(edit.call, 80)}`" if edit.call else ""
    return f"{format_place(edit.file, edit.line)}, {_VERBS[edit.kind]} `{format_line(edit.old, 80)}`{where}"


def _format_step_code(step: PlanStep) -> str:
    """The edits of a step; its advice as a comment if no program can apply it; "" if it is only settings."""
    if step.edits:
        return "\n".join(f"# {_describe_edit(edit)}:\n{edit.new}" for edit in step.edits)
    if step.settings:
        return ""
    return textwrap.fill(
        f"{step.place or 'In your code'}: {step.change}", WIDTH, initial_indent="# ", subsequent_indent="# "
    )


# What trying a plan showed


#: The keys of outcomes in a session's meta: of a plan, and of a search.
META_KEY, SEARCH_KEY = "tried", "searched"


@dataclass(frozen=True)
class Measured:
    """What runs of a program measured without ("before") and with ("after") a change; None for what they did not.

    Of several runs, `recompiles_before` is the smallest count and `recompiles_after` the largest, and each time is that
    of the fastest run. `compile_seconds_*` (s) is the time of all compiles, `wall_seconds_*` (s) that of the whole run.
    """

    recompiles_before: int | None = None
    recompiles_after: int | None = None
    compile_seconds_before: float | None = None
    compile_seconds_after: float | None = None
    wall_seconds_before: float | None = None
    wall_seconds_after: float | None = None


@dataclass(frozen=True)
class Outcome(Measured):
    """What trying a plan showed.

    `exit_codes` are those without and with the plan; None for a workload that is no process, and after a timeout.
    `same_output` is None if the output was not compared. `backend` is the backend that replaced the program's own, as
    "eager" for `--fast`, or None; times are then of no interest. `holds`: the recompiles that the plan names are gone
    and nothing else changed. `note` says in one line why it does not hold, or what is not known. `code` is the block
    that was tried, and `runs` how often each side ran.
    """

    exit_codes: tuple[int | None, int | None] = (None, None)
    same_output: bool | None = None
    backend: str | None = None
    note: str | None = None
    holds: bool = False
    code: str = ""
    runs: int = 1

    def to_dict(self) -> dict[str, Any]:
        """The outcome as plain JSON values, with `text`, the outcome in one line."""
        return {**to_plain(self), "text": str(self)}

    def __str__(self) -> str:
        parts = []
        if self.recompiles_before is not None and self.recompiles_after is not None:
            parts.append(f"{format_amount(self.recompiles_before, 'recompile')} -> {self.recompiles_after}")
        if self.backend is not None:
            parts.append(f"with the backend {self.backend!r}, so times were not compared")
        else:
            times = (
                (self.compile_seconds_before, self.compile_seconds_after, "compiling"),
                (self.wall_seconds_before, self.wall_seconds_after, "in all"),
            )
            for before, after, what in times:
                if before is not None and after is not None:
                    parts.append(f"{format_seconds(before)} -> {format_seconds(after)} {what}")
        one, other = self.exit_codes
        if one is not None and other is not None:
            parts.append(f"exit code {one}" if one == other else f"exit code {one} -> {other}")
        if self.same_output is not None:
            parts.append("same output" if self.same_output else "other output")
        verdict = "Tried, the plan holds" if self.holds else "Tried, the plan does not hold"
        text = f"{verdict}: {', '.join(parts)}" if parts else verdict
        return escape_controls(f"{text}. {self.note[:1].upper()}{self.note[1:]}." if self.note else f"{text}.")


def read_outcome(meta: Mapping[str, Any]) -> Outcome | None:
    """The outcome that is stored in a session's meta; None if no plan was tried."""
    found = meta.get(META_KEY)
    return read_plain(Outcome, found) if isinstance(found, Mapping) else None


@dataclass(frozen=True)
class SearchOutcome(Measured):
    """What a search for a change found, as sentences: see `compilediag.fix`.

    `patch` is a unified diff; "" if nothing held. `left` are the causes that remain, `rejected` what was tried and
    why it was not taken. `holds`: the change was found, and nothing spoke against it. `lines` is how many lines it
    changes; None, as what was measured, if no change held.
    """

    headline: str = ""
    patch: str = ""
    holds: bool = False
    left: tuple[str, ...] = ()
    rejected: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    lines: int | None = None

    def describe(self) -> Section:
        """The outcome as a document, without what was rejected."""
        blocks: list[Block] = [Para(self.headline, strong=True)]
        blocks += [CodeBlock(self.patch.rstrip("\n"), "The proven patch:")] if self.patch else []
        blocks += ["Left:", Items([[text] for text in self.left])] if self.left else []
        return Section(*blocks, *self.notes)


def read_search(meta: Mapping[str, Any]) -> SearchOutcome | None:
    """The outcome of a search that is stored in a session's meta; None without one."""
    found = meta.get(SEARCH_KEY)
    return read_plain(SearchOutcome, found) if isinstance(found, Mapping) else None
