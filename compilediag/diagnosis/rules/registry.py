"""All rules by name, and the page of torch's documentation about each."""

from __future__ import annotations

from dataclasses import dataclass

from ..rule import Rule, list_plugin_rules
from . import (
    autotune,
    break_even,
    caches,
    coverage,
    cudagraphs,
    export,
    failures,
    graph_breaks,
    guards,
    ranks,
    recompiles,
    refused_calls,
)

_ALL = (
    *guards.GUARD_RULES,
    *recompiles.RULES,
    *refused_calls.RULES,
    *graph_breaks.RULES,
    *failures.RULES,
    *ranks.RULES,
    *break_even.RULES,
    *caches.RULES,
    *autotune.RULES,
    *cudagraphs.RULES,
    *export.RULES,
    *coverage.RULES,
)
#: Name -> rule.
RULES = {rule.id: rule for rule in _ALL}

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
    return RULES.get(name) or next((rule for rule in list_plugin_rules() if rule.id == name), None)


def find_torch_page(name: str) -> TorchPage | None:
    """The page that explains the cause behind a rule; None for rules of compilediag itself, and without a page."""
    rule = find_rule(name)
    page = _PAGES.get(rule.docs or "") if rule is not None else None
    return TorchPage(page[0], _BASE + page[1]) if page is not None else None
