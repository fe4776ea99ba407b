"""The programs of the harness and what is known of each: programs/NAME.py and, beside it, programs/NAME.toml.

The .toml file is written, and its ways are tried by hand, before compilediag sees the program:

    symptom = "..."             what the user notices, one sentence
    threads = ["owner/repo#1"]  users who had it
    backend = "eager"           or "aot_eager" where gradients matter, "inductor" where its caches are the subject
    recompiles = 3              without a change
    after = 0                   with one way of each cause
    same_calls = true           two or more causes fail at the same calls
    beside = ["graph_break"]    findings that are no root cause of a recompile, such as a limit
    keeps_operations = 0.9      what share of the operations in graphs has to stay in graphs
    gains_operations = 2.0      how many times as many have to run in graphs with an advice that is no step of the plan
    fails = true                without a change it raises, so that its results cannot be compared

    [[causes]]
    rule = "size_changes"
    at = "loss = step(batch)"   the user's line, of which this is a part
    expression = "batch.shape[0]"  in the user's names at that line
    says = "x.shape[0] was 4"    part of the finding's title

    [[causes.ways]]             the ways to fix it, of which the first is the preferred one
    change = [["old", "new"]]   replacements in the source, each of text that occurs once
    settings = {name = "..."}   configuration, as in Finding.fix
    setup = "torch...."         other statements after the imports
    text = "..."                part of the advice, if only a person can follow it
    covers = [1]                the other causes, by number from 0, that this way fixes too
    nothing = true              no change is needed: these versions are expected
    after = 0                   if it differs from the program's

What does not work yet is in known_failures.toml, which `python -m tests.advice --update` writes.
"""

from __future__ import annotations

import functools
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "programs"
FAILURES = Path(__file__).parent / "known_failures.toml"
#: In place of a reason: the check has not run since compilediag's advice changed, so its outcome is open.
NOT_RUN = "not run"


@dataclass(frozen=True, eq=False)
class Way:
    """One way to fix a cause, as a person would write it."""

    change: tuple[tuple[str, str], ...] = ()
    settings: dict[str, str | int | bool] = field(default_factory=dict)
    setup: str = ""
    text: str = ""
    covers: tuple[int, ...] = ()
    nothing: bool = False
    after: int | None = None


@dataclass(frozen=True, eq=False)
class KnownCause:
    """A root cause that is known beforehand."""

    rule: str
    at: str
    expression: str | None = None
    says: str | None = None
    ways: tuple[Way, ...] = ()


@dataclass(frozen=True, eq=False)
class Program:
    """A program and its expectation."""

    name: str
    recompiles: int
    causes: tuple[KnownCause, ...]
    symptom: str = ""
    threads: tuple[str, ...] = ()
    backend: str = "eager"
    after: int = 0
    same_calls: bool = False
    beside: tuple[str, ...] = ()
    keeps_operations: float = 0.9
    gains_operations: float = 0.0
    fails: bool = False

    @property
    def worker(self) -> str:
        """The module of the process that runs it."""
        return "tests.advice.worker"

    @property
    def path(self) -> Path:
        return FOLDER / f"{self.name}.py"

    @functools.cached_property
    def source(self) -> str:
        return self.path.read_text()

    def find_line(self, text: str) -> int:
        """The number of the only line that contains this text."""
        found = [n for n, line in enumerate(self.source.splitlines(), 1) if text in line]
        assert len(found) == 1, f"{self.name}: {text!r} is on lines {found}"
        return found[0]


def load_program(path: Path) -> Program:
    """Read one expectation; unknown keys are errors."""
    return Program(name=path.stem, **read_values(path))


def read_values(path: Path) -> dict[str, Any]:
    """The values of an expectation, by the names of the fields of a program."""
    values: dict[str, Any] = tomllib.loads(path.read_text())
    causes = tuple(_make_cause(cause) for cause in values.pop("causes", ()))
    return {"causes": causes, **{key: _freeze(value) for key, value in values.items()}}


def _make_cause(values: dict[str, Any]) -> KnownCause:
    ways = tuple(_make_way(way) for way in values.pop("ways", ()))
    return KnownCause(ways=ways, **values)


def _make_way(values: dict[str, Any]) -> Way:
    change = tuple((old, new) for old, new in values.pop("change", ()))
    return Way(change=change, **{key: _freeze(value) for key, value in values.items()})


def _freeze(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


@functools.cache
def load_failures() -> dict[str, dict[str, str]]:
    """Check -> program -> why it does not work yet."""
    return tomllib.loads(FAILURES.read_text()) if FAILURES.exists() else {}


@functools.cache
def load_programs() -> tuple[Program, ...]:
    """All programs, by name."""
    programs = tuple(load_program(path) for path in sorted(FOLDER.glob("*.toml")))
    assert {program.path for program in programs} == set(FOLDER.glob("*.py")), "a program has no expectation"
    return programs
