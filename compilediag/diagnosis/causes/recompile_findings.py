"""Turn each root cause of recompiles into a finding."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ...events import Recompile
from ...formatting import format_amount, format_lost, format_names, format_times
from ..evidence import Evidence, find_first, get_ids, kept
from ..finding import Finding, get_severity
from ..rule import Advice, describe_change, list_changes
from ..rules.guards import advise
from ..rules.guards_on_numbers import SIZE_KINDS
from .call_sites import make_call_fields
from .cause import ZERO_ONE, Cause, list_unique
from .grouping import find_causes
from .source_paths import split_property

MAX_DETAILS = 64


@kept
def find_recompiles(evidence: Evidence) -> list[Finding]:
    """One finding per root cause, without side effects of others."""
    advised = [(cause, advise(cause)) for cause in find_causes(evidence)]
    effects = find_side_effects(advised)
    expected = [cause for cause, advice in advised if advice.is_expected]
    return [
        make_finding(cause, advice if advice.is_expected else _drop_useless(advice, cause, expected))
        for cause, advice in advised
        if id(cause) not in effects
    ]


def find_side_effects(advised: Sequence[tuple[Cause, Advice]]) -> set[int]:
    """The causes, by `id`, that are expected and only came with another one that no change resolves either."""
    first = [(cause, advice) for cause, advice in advised if cause.is_first]
    kept = {row.event_id for cause, advice in first for row in cause.caused if _is_kept(row, advice)}
    expected = (cause for cause, advice in advised if advice.is_expected and not cause.is_first)
    return {id(cause) for cause in expected if kept.issuperset(row.event_id for row in cause.failed)}


def _is_kept(row: Recompile, advice: Advice) -> bool:
    """True if a recompile stays whatever becomes of the cause that it is attributed to."""
    return advice.is_expected or (row.guard_kind in SIZE_KINDS and row.actual in ZERO_ONE)


def _drop_useless(advice: Advice, cause: Cause, expected: Sequence[Cause]) -> Advice:
    """The advice; without its changes if each recompile is needed because of another cause."""
    numbers = get_ids(cause.failed)
    beside = [other for other in expected if set(numbers) & {*get_ids(other.failed)}]
    needed = {number for other in beside for number in get_ids(other.failed)}
    if not needed.issuperset(numbers):
        return advice
    names = format_names(list_unique(f"`{other.name or other.kind}`" for other in beside))
    return replace(
        advice,
        action=f"No change is needed: {names} changed at the same calls, so these recompiles are expected.",
        changes=(),
        is_expected=True,
    )


def make_finding(cause: Cause, advice: Advice) -> Finding:
    """The finding of a cause: what it cost and what changed, then what to do."""
    what = advice.what_changed or describe_change(cause)
    rows = cause.recompiles
    return Finding(
        rule=advice.rule.id,
        severity=get_severity(cause.seconds, cause.count, advice.ceiling),
        title=f"{_describe_cost(cause)}: {what}",
        seconds_lost=cause.seconds,
        evidence=cause.evidence,
        suggestion=advice.suggestion + _describe_others(cause),
        cost=advice.rule.cost,
        fix=advice.fix,
        changes=advice.changes or list_changes(advice.action),
        is_expected=advice.is_expected,
        function=find_first(row.function for row in rows),
        file=find_first(row.file for row in rows),
        line=find_first(row.line for row in rows),
        count=cause.count if cause.is_first else 0,
        details=cause.values[:MAX_DETAILS],
        user_file=find_first(row.user_file for row in rows),
        user_line=find_first(row.user_line for row in rows),
        user_code=cause.user_code,
        **make_call_fields(cause.call_site),
        source=cause.source,
        kind=cause.kind,
        places=cause.places,
        seconds_at_stake=cause.seconds_at_stake,
        what_changed=what,
    )


def _describe_cost(cause: Cause) -> str:
    """How often it recompiled, and what that cost."""
    if not cause.is_first:
        return f"{cause.place_text} recompiled {format_times(cause.count)} because of this and other causes"
    lost = format_lost(cause.seconds, cause.timed_count, cause.count)
    return f"{cause.place_text} recompiled {format_times(cause.count)}, {lost}"


def _describe_others(cause: Cause) -> str:
    """The other guards that failed at the same calls: fixing only this one leaves those, and the other way round."""
    # The marks of a size include the sizes that changed with it.
    known = SIZE_KINDS if cause.kind in SIZE_KINDS else ()
    beside = [_format_guard(kind, source) for kind, source in cause.also if kind not in known]
    text = f" At the same calls these guards failed too: {format_names(beside)}." if beside else ""
    if not cause.shared:
        return text
    recompiles = format_amount(len(cause.shared), "recompile")
    others = "another cause" if len(cause.shared) == 1 else "other causes"
    return f"{text} This guard also failed in {recompiles} attributed to {others}; fix both."


def _format_guard(kind: str, source: str) -> str:
    return source if split_property(source)[1] else f"{source} ({kind.replace('_', ' ')})"
