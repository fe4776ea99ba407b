"""A step of the plan: one change of the user's program."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ...formatting import SHOWN_VALUES, format_place
from ..change import CodeChange, Edit, Settings
from ..finding import Finding

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
    value: `model.py:12: self.step += 1`.
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
        numbers = ("recompiles_saved_alone", "recompiles_saved", "seconds_saved", "rule", "can_be_applied")
        return {
            **{name: getattr(self, name) for name in (*names, *numbers)},
            "values": [*self.values[:MAX_VALUES]],
            "value_count": len(self.values),
            "title_values": [*self.title_values[:SHOWN_VALUES]],
            "has_more_values": len(self.title_values) > SHOWN_VALUES,
            "evidence": [*self.evidence],
            "causes": [*self.causes],
            "fingerprints": [*self.fingerprints],
            "alternatives": [change.code for change in self.alternatives],
        }
