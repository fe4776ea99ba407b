"""What there is to read about each rule: all rules by name, torch's page, and one worked example.

An example is a small program, what compilediag prints for it, and the program with the change. `make docs` writes
`examples.json` from the programs of tests/advice, which the test suite runs with every change.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..system import plugins
from .rule import Rule
from .rules import (
    autotune,
    break_even,
    caches,
    costs,
    coverage,
    cudagraphs,
    export,
    failures,
    graph_breaks,
    guards_on_numbers,
    guards_on_objects,
    ranks,
    recompiles,
    refused_calls,
)

#: Subject -> its rules. Those about guards are in the order in which they are tried.
RULES_BY_SUBJECT: dict[str, tuple[Rule, ...]] = {
    "Sizes and numbers": guards_on_numbers.RULES,
    "Tensors, objects and modes": (guards_on_objects.FRESH_CLASS, *guards_on_objects.RULES, guards_on_objects.OTHER),
    "Limits, stances, graph breaks and failures": (
        *recompiles.RULES,
        *refused_calls.RULES,
        *graph_breaks.RULES,
        *failures.RULES,
    ),
    "Caches, entries and repeated code": (*break_even.RULES, *caches.RULES, *costs.RULES),
    "Autotuning and CUDA graphs": (*autotune.RULES, *cudagraphs.RULES),
    "Exports, ranks and data that was not collected": (*export.RULES, *ranks.RULES, *coverage.RULES),
}
#: Name -> rule.
RULES = {rule.id: rule for rules in RULES_BY_SUBJECT.values() for rule in rules}

_BASE = "https://docs.pytorch.org/docs/stable/user_guide/torch_compiler/"
#: What `Rule.docs` can name.
_PAGES = {
    "recompiles": ("Dealing with recompilations", "compile/programming_model.recompilation.html"),
    "shapes": ("Dynamic shapes", "torch.compiler_dynamic_shapes.html"),
    "breaks": ("Working with graph breaks", "compile/programming_model.graph_breaks_index.html"),
    "skipped": ("Skipped functions", "compile/programming_model.skipped_functions.html"),
    "export": ("torch.export", "export.html"),
    "cudagraphs": ("CUDAGraph Trees", "torch.compiler_cudagraph_trees.html"),
    "trouble": ("torch.compile troubleshooting", "torch.compiler_troubleshooting.html"),
}


@dataclass(frozen=True)
class TorchPage:
    """A page of torch's documentation."""

    title: str
    url: str


def find_rule(name: str) -> Rule | None:
    """The rule of that name, also one of a plug-in; None for a finding that a plug-in made without a rule."""
    of_plugins = (plugin.use(lambda rule: rule) for plugin in plugins.list_plugins("rules"))
    rules = (rule for rule in of_plugins if isinstance(rule, Rule) and rule.id == name)
    return RULES.get(name) or next(rules, None)


def find_torch_page(name: str) -> TorchPage | None:
    """The page that explains the cause behind a rule; None for rules of compilediag itself, and without a page."""
    rule = find_rule(name)
    page = _PAGES.get(rule.docs or "") if rule is not None else None
    return TorchPage(page[0], _BASE + page[1]) if page is not None else None


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
    examples: dict[str, dict[str, Any]] = json.loads(FILE.read_text(encoding="utf-8"))
    for values in examples.values():
        values["changes"] = tuple(ExampleChange(**change) for change in values["changes"])
    return {rule: Example(**values) for rule, values in examples.items()}
