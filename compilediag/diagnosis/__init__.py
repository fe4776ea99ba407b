"""Find what cost time, why, and what to change: typed rows in, findings out, and nothing else.

The rules of plug-ins (docs/plugins.md) add theirs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ..events import RANKED, RankMember, Rows
from ..system import plugins
from .change import CodeChange, Edit, fix_code, merge_fixes
from .evidence import Evidence, kept_after
from .finding import SEVERITIES, Finding, find_program_file, make_rank_key, name_findings
from .rule import Rule
from .rules.autotune import find_tuning_problems
from .rules.break_even import CallTotals, break_even, find_entries_used_once, find_guard_costs, list_entries, sum_calls
from .rules.caches import explain_miss, find_cache_problems
from .rules.costs import find_unrolled_loops
from .rules.coverage import FEEDS, explain_gaps, find_gaps, find_missing_data, map_collected
from .rules.cudagraphs import find_cudagraph_problems
from .rules.export import find_export_problems
from .rules.failures import add_empty_compiles, find_failures
from .rules.graph_breaks import find_graph_breaks
from .rules.ranks import find_rank_problems
from .rules.recompiles import find_limits, find_recompiles
from .rules.refused_calls import find_refused_calls

__all__ = [
    "FEEDS",
    "CallTotals",
    "CodeChange",
    "Edit",
    "Finding",
    "Rule",
    "break_even",
    "diagnose",
    "explain_gaps",
    "explain_miss",
    "find_gaps",
    "fix_code",
    "map_collected",
    "merge_fixes",
    "sum_calls",
]


def diagnose(data: Rows) -> list[Finding]:
    """Find what to change, most seconds lost first; the same rows always give the same list.

    A program that compiled each function once, without graph breaks, has no findings.
    """
    evidence = Evidence.of(data)
    found = [plugin.use(lambda rule: _call_rule(rule, data)) or () for plugin in plugins.list_plugins("rules")]
    plugged = name_findings(evidence, [finding for findings in found for finding in findings])
    return sorted([*_find_problems(evidence), *plugged], key=make_rank_key)


@kept_after(find_program_file, find_recompiles, list_entries, *RANKED, RankMember)
def _find_problems(evidence: Evidence) -> list[Finding]:
    """The findings of our own rules."""
    found = [
        *find_limits(evidence),
        *add_empty_compiles(evidence, find_recompiles(evidence)),
        *find_failures(evidence),
        *find_refused_calls(evidence),
        *find_rank_problems(evidence),
        *find_entries_used_once(evidence),
        *find_guard_costs(evidence),
        *find_unrolled_loops(evidence),
        *find_graph_breaks(evidence),
        *find_cache_problems(evidence),
        *find_tuning_problems(evidence),
        *find_cudagraph_problems(evidence),
        *find_export_problems(evidence),
        *find_missing_data(evidence),
    ]
    return name_findings(evidence, found)


def _call_rule(rule: Rule | Callable[[Rows], object], data: Rows) -> list[Finding]:
    """The findings of a plug-in's function; its rules about guards count when a cause is advised on."""
    result = () if isinstance(rule, Rule) else rule(data)
    findings = list(result) if isinstance(result, Iterable) else []
    if not all(isinstance(finding, Finding) and finding.severity in SEVERITIES for finding in findings):
        raise TypeError("a rule has to return compilediag.diagnosis.Finding objects")
    return findings
