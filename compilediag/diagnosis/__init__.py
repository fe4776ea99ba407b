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
from .rules.autotune_rules import tuning_findings
from .rules.break_even import CallTotals, break_even, call_totals, once_findings
from .rules.cache_misses import explain_miss
from .rules.cache_rules import cache_findings
from .rules.coverage import FEEDS, blind, coverage_findings, observed, unobserved
from .rules.cudagraph_rules import graph_findings
from .rules.export_rules import export_findings
from .rules.failure_rules import failure_findings, with_empty
from .rules.graph_break_rules import break_findings
from .rules.rank_rules import rank_findings

__all__ = [
    "FEEDS",
    "CallTotals",
    "Finding",
    "blind",
    "break_even",
    "call_totals",
    "diagnose",
    "explain_miss",
    "fix_code",
    "merged",
    "observed",
    "strikes",
    "unobserved",
]


def diagnose(tables: Any) -> list[Finding]:
    """The findings of `tables`, most seconds lost first; the same tables always give the same list.

    `tables` is anything with the DataFrames of a session as attributes; those that are absent are taken as
    empty. A program that compiled each function once, without graph breaks, has no findings.
    """
    recompiled = [finding_of(cause) for cause in find_causes(tables)]
    found = [
        *limit_findings(tables, recompiled),
        *with_empty(tables, recompiled),
        *failure_findings(tables),
        *rank_findings(tables),
        *once_findings(tables),
        *break_findings(tables),
        *cache_findings(tables),
        *tuning_findings(tables),
        *graph_findings(tables),
        *export_findings(tables),
        *coverage_findings(tables),
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
