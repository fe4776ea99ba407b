"""The plan: its steps and what they save, also as a document, a block of code, a patch and plain JSON values; and what
trying it showed.
"""

from __future__ import annotations

import difflib
import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from ...document import WIDTH, Block, Code, CodeBlock, Items, Para, Place, Section, to_html, to_text
from ...errors import CompilediagError
from ...formatting import (
    SHOWN_VALUES,
    escape_controls,
    escape_lines,
    find_cell_number,
    format_amount,
    format_line,
    format_names,
    format_place,
    format_seconds,
    format_times,
    get_basename,
)
from ...json_document import read_plain, to_plain
from ...system.files import find_working_folder
from ...system.source_files import SourceReader, read_cell_code, read_typed_cell, split_lines
from ..change import BEGIN, CodeChange, Edit, Settings, format_settings, merge_settings
from ..finding import Finding
from ..rules.costs import CompileCost, find_cost_kind
from ..source_edits import apply_edits, read_settings
from .specs import DynamicSpec

#: Values of a step that `to_dict()` has: the first ones.
MAX_VALUES = 64


@dataclass(frozen=True)
class PlanStep:
    """One change of the user's program, and what it saves.

    `file`, `line` and `function` are the user's own place, `code` is the text of that line, and `expression` names what
    varies there, in the user's names; None if it is not known. `what` is what varies in words, with its `values`, and
    `change` is what to do, as code where there is code.

    `recompiles_saved_alone` counts the recompiles that this step saves without any other. `recompiles_saved` and
    `seconds_saved` (s) are what it saves together with all steps before it, so those of the last step are the plan's.
    `saving` says both in one sentence. `evidence` holds the event ids of the recompiles at which its guards failed.
    `settings` and `edits` are the change in a form that a program can apply; `alternatives` are other ways.
    `causes` has `Finding.what_changed` of each cause that the step resolves; `fingerprints` are those of the findings.
    `title` is the cause in a few words, to which `title_values` belong, and `origin` the line of a module that uses the
    value: `model.py:12: self.step += 1`. `is_certain` is false if the recording does not prove that the step saves
    recompiles, so that it may. `is_by_hand`: only a person can make the change.
    """

    rule: str
    what: str
    change: str
    why: str
    saving: str
    recompiles_saved_alone: int
    recompiles_saved: int
    seconds_saved: float
    evidence: tuple[int, ...]
    file: str | None = None
    line: int | None = None
    function: str | None = None
    code: str | None = None
    expression: str | None = None
    values: tuple[str, ...] = ()
    settings: Settings | None = None
    edits: tuple[Edit, ...] = ()
    alternatives: tuple[CodeChange, ...] = ()
    causes: tuple[str, ...] = ()
    title: str = ""
    title_values: tuple[str, ...] = ()
    origin: str = ""
    fingerprints: tuple[str, ...] = ()
    is_certain: bool = True
    is_by_hand: bool = False

    def resolves(self, finding: Finding) -> bool:
        """True if it resolves the cause of a finding."""
        return finding.what_changed in self.causes and not set(self.evidence).isdisjoint(finding.evidence)

    @property
    def place(self) -> str:
        """`train.py:28`; "" if it is not known."""
        return format_place(self.file, self.line)

    @property
    def can_be_applied(self) -> bool:
        """True if a program can make this change."""
        return bool(self.settings or self.edits)

    def to_dict(self) -> dict[str, Any]:
        """The step as plain JSON values."""
        names = (
            "file",
            "line",
            "place",
            "function",
            "code",
            "expression",
            "title",
            "origin",
            "what",
            "change",
            "why",
            "saving",
        )
        numbers = ("recompiles_saved_alone", "recompiles_saved", "seconds_saved", "rule")
        return {
            **{name: getattr(self, name) for name in (*names, *numbers, "can_be_applied", "is_certain")},
            "values": [*self.values[:MAX_VALUES]],
            "value_count": len(self.values),
            "title_values": [*self.title_values[:SHOWN_VALUES]],
            "has_more_values": len(self.title_values) > SHOWN_VALUES,
            "evidence": [*self.evidence],
            "causes": [*self.causes],
            "fingerprints": [*self.fingerprints],
            "alternatives": [change.code for change in self.alternatives],
        }


# The files and notebook cells that a plan changes: as a unified diff, and as lines with the number of their step. A
# cell is read from the IPython that runs in this process, so a plan has the cells only of a session recorded there.

#: A cell of at most so many lines is shown whole; of a longer one, and of a file, the lines around each change.
_WHOLE, _AROUND = 40, 3
_HUNK = re.compile(r"@@ -(\d+)(?:,\d+)? \+\d+(?:,\d+)? @@")
_NO_END = "\\ No newline at end of file\n"


class DiffLine(NamedTuple):
    """A line of a diff: its number before the change, None for a new one; " ", "-" or "+"; its text; and the number of
    the plan's step that changes it, None for a line that stays.
    """

    number: int | None
    mark: str
    text: str
    step: int | None = None


@dataclass(frozen=True)
class ChangedSource:
    """A file or cell that a plan changes. `before` and `after` are its texts; None where only the lines are known."""

    name: str
    lines: tuple[DiffLine, ...]
    before: str | None = None
    after: str | None = None

    @property
    def cell(self) -> int | None:
        """The number of the cell; None for a file."""
        return find_cell_number(self.name)

    @property
    def place(self) -> str:
        """`In[4]`, `train.py`"""
        return get_basename(self.name) if self.cell is None else f"In[{self.cell}]"


def list_changed_sources(
    steps: Sequence[PlanStep], settings: Settings, is_own: bool, proven: str = ""
) -> tuple[ChangedSource, ...]:
    """What the steps of a plan change, or the patch that a search has proven; empty if a file is not the recorded one.
    `settings` are those of all steps, merged. `is_own`: this process recorded the session.

    Settings are put below the imports of the first file. A step that only a person can follow is not in it.
    """
    if proven:
        return tuple(_read_patch(proven, is_own))
    edits: dict[str, list[Edit]] = {}
    for edit in (edit for step in steps for edit in step.edits):
        edits.setdefault(edit.file, []).append(edit)
    reader = SourceReader(is_own)
    places = (step for step in steps if step.settings and step.file and _is_unchanged(step, reader, is_own))
    files = list(edits) or [step.file for step in places if step.file][:1]
    block = dict.fromkeys(files[:1], settings)
    try:
        texts = [_change(file, edits.get(file, []), block.get(file, {}), reader, is_own) for file in files]
    except (CompilediagError, SyntaxError, ValueError, RecursionError, MemoryError):
        return ()
    return tuple(
        ChangedSource(name, tuple(_list_lines(name, before, after, steps)), before, after)
        for name, (before, after) in zip(files, texts, strict=True)
    )


def make_patch(sources: Sequence[ChangedSource]) -> str | None:
    """What the steps of a plan change, as a unified diff; None if it is nothing."""
    lines: list[str] = []
    for source in sources:
        before, after = (split_lines(text or "") for text in (source.before, source.after))
        name = source.name
        if source.cell is None:
            # The path from the current folder if the file is below it, for `git apply` and `patch -p1`.
            here, path = find_working_folder(), Path(name)
            path = path if here is None else path.absolute()
            name = path.as_posix().lstrip("/")
            if here is not None and path.is_relative_to(here):
                name = path.relative_to(here).as_posix()
        lines += list_diff_lines(name, before, after)
    return "".join(lines) or None


def _change(
    file: str, edits: Sequence[Edit], settings: Settings, reader: SourceReader, is_own: bool
) -> tuple[str, str]:
    """The text of a file or cell before and after; an error if it is not what was recorded any more."""
    number = find_cell_number(file)
    if number is None:
        before = reader.read(file)
        return before, apply_edits(before, edits, settings).text
    code, typed = read_cell_code(number), read_typed_cell(number)
    if not is_own or code is None or typed is None:
        raise CompilediagError(f"{file} is no cell of this notebook")
    # As a docstring, the line of our magic stays above settings. What a cell before imports, this one has.
    source, edited = code.splitlines(), apply_edits(code, edits, settings, has_torch=True)
    after = [
        typed[number - 1] if line == source[number - 1] else line
        for line, number in zip(edited.text.splitlines(), edited.lines, strict=False)
    ]
    return "\n".join(typed), "\n".join(after)


def _is_unchanged(step: PlanStep, reader: SourceReader, is_own: bool) -> bool:
    """True if the whole line of a step is the recorded one: a session from elsewhere may name any file."""
    if step.line is None or step.line < 1 or not step.code:
        return False
    number = find_cell_number(step.file or "")
    read = reader.find(step.file or "") if number is None else read_cell_code(number) if is_own else None
    lines = split_lines(read or "")
    return [line.strip() for line in lines[step.line - 1 : step.line]] == [step.code.strip()]


# Diffs


def list_diff_lines(name: str, before: Sequence[str], after: Sequence[str]) -> Iterator[str]:
    """The lines of a unified diff of a file."""
    for line in difflib.unified_diff(before, after, f"a/{name}", f"b/{name}"):
        yield line if line.endswith("\n") else f"{line}\n{_NO_END}"


def _list_lines(file: str, before: str, after: str, steps: Sequence[PlanStep]) -> Iterator[DiffLine]:
    old, new = before.splitlines(), after.splitlines()
    around = _WHOLE if find_cell_number(file) is not None and len(old) <= _WHOLE else _AROUND
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    for tag, a, b, c, d in (code for group in matcher.get_grouped_opcodes(around) for code in group):
        if tag == "equal":
            yield from (DiffLine(number + 1, " ", old[number]) for number in range(a, b))
            continue
        found = [_find_step(file, text, a + 1, steps) for text in new[c:d]]
        # Where no new line says whose it is: the step that takes code away nearest to it.
        replacing = (
            (abs(edit.line - a - 1), number)
            for number, step in enumerate(steps, 1)
            for edit in step.edits
            if edit.file == file and edit.kind == "replace"
        )
        step = next(filter(None, found), None) or min(replacing, default=(0, None))[1]
        yield from (DiffLine(number + 1, "-", old[number], step) for number in range(a, b))
        for text, own in zip(new[c:d], found, strict=True):
            step = own or step
            yield DiffLine(None, "+", text, step)


def _find_step(file: str, text: str, line: int, steps: Sequence[PlanStep]) -> int | None:
    """The step that a new line is of: the one with an edit nearest to it, or with a setting that it assigns."""
    found = [
        (abs(edit.line - line), number)
        for number, step in enumerate(steps, 1)
        for edit in step.edits
        if edit.file == file
        and (edit.new in text if edit.kind == "replace" else text.strip() in (*edit.new.splitlines(), edit.imports))
    ]
    if found:
        return min(found)[1]
    key = text.partition("=")[0].rpartition(".")[2].strip()
    keys = ((number, _list_settings(step)) for number, step in enumerate(steps, 1))
    return next((number for number, own in keys if key in own), None)


def _list_settings(step: PlanStep) -> Settings:
    """All settings that a step assigns, in any thread."""
    begun = (read_settings(edit) for edit in step.edits if edit.kind == BEGIN)
    return merge_settings([step.settings, *begun]).settings


# A patch that a search has proven


def _read_patch(patch: str, is_own: bool) -> Iterator[ChangedSource]:
    """The files of a unified diff that compilediag has made. The texts are those of cells, which a page can replace."""
    for part in re.split(r"^(?=--- a/)", patch, flags=re.MULTILINE):
        head, *rest = part.splitlines() or [""]
        if not head.startswith("--- a/") or not rest:
            continue
        name = head.removeprefix("--- a/")
        lines: list[DiffLine] = []
        at = 0
        for line in rest[1:]:
            if found := _HUNK.match(line):
                at = int(found[1])
            elif line[:1] in (" ", "-"):
                lines.append(DiffLine(at, line[0], line[1:]))
                at += 1
            elif line[:1] == "+":
                lines.append(DiffLine(None, "+", line[1:]))
        number = find_cell_number(name)
        typed = read_typed_cell(number) if is_own and number is not None else None
        after = None if typed is None else _apply_lines(typed, lines)
        yield ChangedSource(name, tuple(lines), *(("\n".join(typed), after) if typed and after is not None else ()))


def _apply_lines(before: Sequence[str], lines: Sequence[DiffLine]) -> str | None:
    """The text with the new lines; None if it does not have the old ones."""
    after: list[str] = []
    at = 0
    for line in lines:
        if line.number is None:
            after.append(line.text)
            continue
        after += before[at : line.number - 1]
        at = line.number
        if at > len(before) or before[at - 1] != line.text:
            return None
        after += [line.text] if line.mark == " " else []
    return "\n".join([*after, *before[at:]])


# The plan

#: A cost is the headline from this share of the compile time on.
_WORTH_NAMING = 0.1
_VERBS = {"insert_before": "before", "replace": "instead of"}


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
        found, cost, may = self.measured, self.leading_cost, ""
        if found is not None:
            lines = found.get("lines")
            changes = format_amount(lines, "changed line") if lines else format_amount(len(self.steps), "change")
            total = found["recompiles_before"]
            removed = max(0, total - found["recompiles_after"])
            seconds, left = (found.get(f"compile_seconds_{when}") or 0.0 for when in ("before", "after"))
            saved = max(0.0, seconds - left) if left and found.get("backend") is None else 0.0
        elif cost is not None:
            return cost.headline
        elif not self.recompiles:
            return "Nothing recompiled" if self.is_collected else "Recompiles were not collected"
        elif not self.steps:
            return f"Found no change that removes any of {format_amount(self.recompiles, 'recompile')}"
        else:
            changes, may = format_amount(len(self.steps), "change"), "" if self.is_certain else "may "
            total, removed, seconds, saved = self.recompiles, self.recompiles_saved, self.seconds, self.seconds_saved
        s = "s" if changes.startswith("1 ") and not may else ""
        text = f"{changes} {may}remove{s} {removed} of {format_amount(total, 'recompile')}"
        if not saved:
            return text
        return f"{text} and save{s} {format_seconds(saved)} of {format_seconds(seconds)} compile time"

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
    def is_certain(self) -> bool:
        """False if the recording does not prove that each step saves what it says."""
        return all(step.is_certain for step in self.steps)

    @property
    def by_hand(self) -> tuple[int, ...]:
        """The numbers, from 1, of the steps that only a person can make: no patch and no setting contains them."""
        return tuple(number for number, step in enumerate(self.steps, 1) if step.is_by_hand)

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
        blocks = []
        begun: dict[tuple[str, str], list[Edit]] = {}
        for step in self.steps:
            for edit in step.edits:
                if edit.kind == BEGIN:
                    begun.setdefault((edit.file, edit.old), []).append(edit)
                    continue
                where = f" in `{format_line(edit.call, 80)}`" if edit.call else ""
                what = f"{_VERBS[edit.kind]} `{format_line(edit.old, 80)}`{where}"
                blocks.append(f"# {format_place(edit.file, edit.line)}, {what}:\n{edit.new}")
            if not step.can_be_applied:
                advice = f"{step.place or 'In your code'}: {step.change}"
                blocks.append(textwrap.fill(advice, WIDTH, initial_indent="# ", subsequent_indent="# "))
        for edits in begun.values():
            settings = merge_settings(map(read_settings, edits)).settings
            blocks.append(CodeChange(edits=(replace(edits[0], new=format_settings(settings)),)).code)
        if self.settings:
            blocks.append(f"# Once, before the first compiled call:\n{format_settings(self.settings)}")
        return escape_lines("\n".join(blocks))

    def patch(self) -> str | None:
        """The plan as a unified diff of your files, and of the cells of this notebook; None if they were changed since,
        or no step can be applied. It does not contain the steps `by_hand`.
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
    if missing := describe_missing(plan):
        blocks.append(f"{missing}.")
    blocks.append(Items([[CodeBlock(spec.change.code, spec.title)] for spec in plan.specs], "plain", _IN_PLAN))
    if plan.unresolved:
        blocks += ["Not resolved:", Items([[_describe_cause(cause)] for cause in plan.unresolved], rest=_IN_PLAN)]
    for title, is_timed in (("Where compile time goes:", True), ("At each call:", False)):
        # The details only say where the time went: `to_dict` has them.
        costs: list[list[Block]] = [
            [f"{cost.what}.", *([CodeBlock(cost.code)] if cost.code else []), cost.advice]
            for cost in plan.costs
            if bool(cost.seconds) is is_timed
        ]
        blocks += [title, Items(costs, rest=_IN_PLAN)] if costs else []
    return Section(*blocks, Items([[note] for note in plan.notes], "plain", _IN_PLAN))


def describe_missing(plan: Plan) -> str:
    """`Not in the patch: steps 1 and 3`, which only a person can make; "" if there are none, or no patch."""
    numbers = plan.by_hand
    if not numbers or len(numbers) == len(plan.steps):
        return ""
    return f"Not in the patch: step{'s' if len(numbers) > 1 else ''} {format_names(list(map(str, numbers)))}"


def _describe_step(step: PlanStep) -> list[Block]:
    """The cause with its values, the user's line, the change, and what it saves."""
    code = format_line(step.code or "", 80)
    where = Para(Place(step.place), ": " if step.place and code else "", Code(code))
    change = CodeBlock(step.change) if step.can_be_applied else step.change
    # "`ids` comes in 3 shapes: (4, 16), (6, 16), (6, 24)."
    shown = [format_line(value, 40) for value in step.title_values[:SHOWN_VALUES]]
    more = ", ..." if len(step.title_values) > len(shown) else ""
    values = f"{', '.join(shown)}{more}" or (step.what if step.what != step.title else "")
    cause = f"{step.title}: {values}" if step.title and values else step.title or step.what
    origin = f" ({step.origin})" if step.origin and step.origin not in cause else ""
    return [f"{cause}{origin}.", where if step.place or code else "place not known", change, step.saving]


def _describe_cause(cause: UnresolvedCause) -> Para:
    reason = f" ({format_times(len(cause.evidence))}): {cause.reason}" if cause.reason else ""
    what = f"{cause.what}{reason}"
    return Para(Place(cause.place), ": ", what) if cause.place else Para(what)


# What trying a plan showed


#: The keys of outcomes in a session's meta: of a plan, and of a search.
META_KEY, SEARCH_KEY = "tried", "searched"
#: The key of how many recompiles there were when an outcome was stored.
SEEN_KEY = "tried_recompiles"


def is_outdated(meta: Mapping[str, Any], recompiles: int) -> bool:
    """True if a watch went on after its outcomes were stored, and more recompiled: they are about less."""
    seen = meta.get(SEEN_KEY)
    return isinstance(seen, int) and seen < recompiles


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


M = TypeVar("M", bound=Measured)


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


def read_stored(kind: type[M], meta: Mapping[str, Any]) -> M | None:
    """The outcome of a kind that is stored in a session's meta; None without one."""
    found = meta.get(SEARCH_KEY if kind is SearchOutcome else META_KEY)
    return read_plain(kind, found) if isinstance(found, Mapping) else None
