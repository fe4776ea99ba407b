"""One worked example per rule: a small program, what compilediag prints for it, and the program with the change.

`make docs` writes `examples.json` from the programs of tests/advice, which the test suite runs with every change.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FILE = Path(__file__).with_name("examples.json")


@dataclass(frozen=True)
class ExampleChange:
    """A change that works: what becomes of the recompiles, and a unified diff of the program without file names."""

    outcome: str
    diff: str


@dataclass(frozen=True)
class Example:
    """A program that shows a rule. `symptom` is what a user notices, `printed` what compilediag prints.

    `changes` are the ways that work; none if no change is needed.
    """

    symptom: str
    program: str
    printed: str
    changes: tuple[ExampleChange, ...]

    def __str__(self) -> str:
        parts = [self.symptom, self.program, f"compilediag prints:\n\n{self.printed}"]
        return "\n\n".join([*parts, *(f"{change.outcome}\n\n{change.diff}" for change in self.changes)])


@functools.cache
def load_examples() -> Mapping[str, Example]:
    """Rule -> its example, in alphabetical order. A few rules have none; docs/cookbook says why."""
    return {rule: _read_example(**values) for rule, values in json.loads(FILE.read_text(encoding="utf-8")).items()}


def _read_example(changes: list[dict[str, str]], **values: Any) -> Example:
    return Example(**values, changes=tuple(ExampleChange(**change) for change in changes))
