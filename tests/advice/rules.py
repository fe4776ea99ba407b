"""The rules that compilediag has, found in its code: each needs a program that follows its advice."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from compilediag import diagnosis
from compilediag.diagnosis.rules.guards import GUARD_RULES
from compilediag.events import EXPORT_PROBLEMS

from .known_programs import Program

DIAGNOSIS = Path(diagnosis.__file__).parent

#: Rules without a program here, and where their advice is followed, or why there is nothing to follow.
NOT_HERE = {
    "cudagraph_failed": "needs a GPU: tests/gpu",
    "cudagraph_invalidated": "needs a GPU: tests/gpu",
    "cudagraph_limit": "needs a GPU: tests/gpu",
    "cudagraph_overwritten": "needs a GPU: tests/gpu",
    "cudagraph_paths": "needs a GPU: tests/gpu",
    "cudagraph_rerecord": "needs a GPU: tests/gpu",
    "cudagraph_sizes": "needs a GPU: tests/gpu",
    "cudagraph_skip": "needs a GPU: tests/gpu",
    "cudagraph_stuck": "needs a GPU: tests/gpu",
    "tuning_all_failed": "needs a GPU: tests/gpu",
    "tuning_repeated": "needs a GPU: tests/gpu",
    "tuning_small_gain": "needs a GPU: tests/gpu",
    "choices_failed": "needs a GPU: tests/gpu",
    "cache_bypass": "needs Inductor's caches: tests/live/test_explain_miss.py",
    "cache_entry_gone": "needs Inductor's caches: tests/live/test_explain_miss.py",
    "cache_failed": "needs Inductor's caches: tests/live/parity/test_remote_cache.py",
    "cache_settings": "needs Inductor's caches: tests/live/test_explain_miss.py",
    "used_once": "needs counted calls, on Python 3.12 or later: tests/live/test_calls.py",
    "export_constraint": "torch.export: tests/unit/test_traced.py",
    "export_data_dependent": "torch.export: tests/unit/test_traced.py",
    "export_mismatched_fake_kernel": "torch.export: tests/unit/test_traced.py",
    "export_missing_fake_kernel": "torch.export: tests/unit/test_traced.py",
    "other": "torch's own words, for guards that compilediag does not understand",
    "global_state": "modes that torch has no name for",
    "default_device": "a device mode is reported as mode_stack",
    "not_observed": "what a session did not collect",
    "dropped": "what a session did not collect",
    "ranks_diverge": "needs several ranks: tests/live/test_ranks.py",
    "ranks_differ_in_caches": "needs several ranks: tests/live/test_ranks.py",
}


def list_rules() -> set[str]:
    """The names of all rules."""
    guards = {rule.id for rule in GUARD_RULES}
    exports = {f"export_{problem}" for problem in EXPORT_PROBLEMS}
    return (guards | exports).union(*(_list_rules_of(ast.parse(path.read_text())) for path in DIAGNOSIS.rglob("*.py")))


def _list_rules_of(tree: ast.Module) -> Iterator[str]:
    """The rules that a module gives to a Finding."""
    for call in ast.walk(tree):
        if isinstance(call, ast.Assign) and any(isinstance(t, ast.Name) and t.id == "rule" for t in call.targets):
            yield from _list_names(call.value)
        if not isinstance(call, ast.Call):
            continue
        values = [keyword.value for keyword in call.keywords if keyword.arg == "rule"]
        if isinstance(call.func, ast.Name) and call.func.id in ("_make_finding",) and call.args:
            values.append(call.args[0])
        for value in values:
            yield from _list_names(value)


def _list_names(value: ast.expr) -> Iterator[str]:
    """The constant, or both of a conditional expression."""
    if isinstance(value, ast.IfExp):
        yield from (*_list_names(value.body), *_list_names(value.orelse))
    elif isinstance(value, ast.Constant) and isinstance(value.value, str):
        yield value.value


def list_executed_rules(programs: tuple[Program, ...]) -> set[str]:
    """The rules whose advice a program follows."""
    causes = {cause.rule for program in programs for cause in program.causes if cause.ways or len(program.causes) > 1}
    return causes.union(*(program.beside for program in programs))
