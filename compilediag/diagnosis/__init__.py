"""From tables to findings: what cost time, why, and what to change. Pure: tables in, findings out.

Rules of plug-ins (docs/plugins.md) are asked as well.
"""

from __future__ import annotations

from typing import Any

from .. import plugins
from .causes.grouping import find_causes, strikes_of
from .causes.limits import limit_findings, limits_hit
from .causes.recompiles import finding_of
from .finding import SEVERITIES, Finding, fix_code, merged, rank_key
from .rules.autotune_rules import find_tuning_problems
from .rules.break_even import CallTotals, break_even, find_entries_used_once, sum_calls
from .rules.cache_misses import explain_miss
from .rules.cache_rules import find_cache_problems
from .rules.coverage import FEEDS, explain_gaps, find_gaps, find_missing_data, map_collected
from .rules.cudagraph_rules import find_cudagraph_problems
from .rules.export_rules import find_export_problems
from .rules.failure_rules import add_empty_compiles, find_failures
from .rules.graph_break_rules import find_graph_breaks
from .rules.rank_rules import find_rank_problems

__all__ = [
    "FEEDS",
    "CallTotals",
    "Finding",
    "find_gaps",
    "break_even",
    "sum_calls",
    "diagnose",
    "explain_miss",
    "fix_code",
    "merged",
    "map_collected",
    "strikes",
    "explain_gaps",
]


def diagnose(tables: Any) -> list[Finding]:
    """The findings of `tables`, most seconds lost first; the same tables always give the same list.

    `tables` is anything with the DataFrames of a session as attributes; those that are absent are taken as
    empty. A program that compiled each function once, without graph breaks, has no findings.
    """
    recompiled = [finding_of(cause) for cause in find_causes(tables)]
    found = [
        *limit_findings(tables, recompiled),
        *add_empty_compiles(tables, recompiled),
        *find_failures(tables),
        *find_rank_problems(tables),
        *find_entries_used_once(tables),
        *find_graph_breaks(tables),
        *find_cache_problems(tables),
        *find_tuning_problems(tables),
        *find_cudagraph_problems(tables),
        *find_export_problems(tables),
        *find_missing_data(tables),
        *_plugged(tables),
    ]
    return sorted(found, key=rank_key)


def _plugged(tables: Any) -> list[Finding]:
    """What the rules of plug-ins found."""
    return [finding for plugin in plugins.found("rules") for finding in plugin.call(_accepted, tables) or ()]


def _accepted(told: Any) -> list[Finding]:
    found = list(told or ())
    if not all(isinstance(finding, Finding) and finding.severity in SEVERITIES for finding in found):
        raise TypeError("a rule gives findings: compilediag.diagnosis.Finding")
    return found


def strikes(finding: Finding, tables: Any) -> int:
    """How often what `finding` tells of happened in `tables`, which may be of another run: recompiles by the same
    cause, or hits of the same limit, in its functions. 0 for findings that are neither.
    """
    if finding.rule == "recompile_limit":
        return limits_hit(tables, finding.kind, finding.places)
    return strikes_of(tables, finding.kind, finding.source, finding.places)
