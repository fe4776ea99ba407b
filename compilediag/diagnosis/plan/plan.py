"""What a plan holds: its steps, what they save, and the same as code, text and plain JSON values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ...formatting import fit_html, format_amount, format_place, format_seconds
from ..change import CodeChange, Edit
from ..compile_cost import CompileCost
from ..finding import Finding
from ..settings import Settings
from .dynamic_specs import DynamicSpec
from .patching import make_patch
from .plan_html import HTML_LIMITS, format_html
from .plan_text import format_code, format_settings, format_text

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
    `causes` has `Finding.what_changed` of each cause that the step resolves.
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
        names = ("file", "line", "place", "function", "code", "expression", "what", "change", "why", "saving")
        numbers = ("recompiles_saved_alone", "recompiles_saved", "seconds_saved", "rule", "can_be_applied")
        return {
            **{name: getattr(self, name) for name in (*names, *numbers)},
            "values": [*self.values[:MAX_VALUES]],
            "value_count": len(self.values),
            "evidence": [*self.evidence],
            "causes": [*self.causes],
            "alternatives": [change.code for change in self.alternatives],
        }


@dataclass(frozen=True)
class UnresolvedCause:
    """What no step of the plan resolves, and why. `evidence` holds the event ids of its recompiles."""

    what: str
    reason: str
    place: str
    evidence: tuple[int, ...]

    def to_dict(self) -> dict[str, Any]:
        """The cause as plain JSON values."""
        return {"what": self.what, "reason": self.reason, "place": self.place, "evidence": [*self.evidence]}


@dataclass(frozen=True)
class Plan:
    """The smallest set of changes that saves the most compile seconds.

    `recompiles` and `seconds` (s) are those of the session: its recompiles, and the time of all its compiles.
    `settings` is the configuration of all steps, merged. `tried` is the outcome of running the program with the plan,
    as plain values; None if it was not tried. `notes` are sentences about the plan as a whole. `costs` say where
    compile time goes even if nothing recompiles: what the next process pays again first, then what can be saved.
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
    notes: tuple[str, ...] = ()
    costs: tuple[CompileCost, ...] = ()
    is_collected: bool = True
    is_own: bool = False
    specs: tuple[DynamicSpec, ...] = ()

    @property
    def headline(self) -> str:
        """What the plan saves, in one line."""
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

    def find_step(self, finding: Finding) -> int | None:
        """The number, from 1, of the step for the cause of a finding; None if there is none."""
        for number, step in enumerate(self.steps, 1):
            if finding.what_changed in step.causes and not set(step.evidence).isdisjoint(finding.evidence):
                return number
        return None

    def has_cost(self, finding: Finding) -> bool:
        """True if a finding is one of the costs."""
        return any(cost.what == finding.title and cost.evidence == finding.evidence for cost in self.costs)

    def code(self) -> str:
        """The block to paste: the lines of each step with their place, then the settings, each assigned once."""
        return format_code(self)

    def patch(self) -> str | None:
        """The plan as a unified diff of your files; None if they were changed since, or a step needs a person."""
        return make_patch(self)

    def to_dict(self) -> dict[str, Any]:
        """The plan as plain JSON values."""
        return {
            "headline": self.headline,
            "steps": [step.to_dict() for step in self.steps],
            "recompiles": self.recompiles,
            "recompiles_saved": self.recompiles_saved,
            "seconds": self.seconds,
            "seconds_saved": self.seconds_saved,
            "settings": dict(self.settings),
            "settings_code": format_settings(self.settings),
            "code": self.code(),
            "unresolved": [cause.to_dict() for cause in self.unresolved],
            "tried": None if self.tried is None else dict(self.tried),
            "notes": [*self.notes],
            "costs": [cost.to_dict() for cost in self.costs],
            "specs": [spec.to_dict() for spec in self.specs],
        }

    def __str__(self) -> str:
        return format_text(self)

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(str(self))

    def _repr_html_(self) -> str:
        return fit_html(lambda limit: format_html(self, limit), HTML_LIMITS)
