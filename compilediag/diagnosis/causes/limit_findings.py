"""Findings of functions that reached a recompile limit and run eagerly since."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from ...events import Compile, Recompile
from ...formatting import format_function, format_line, format_times
from ..change import CodeChange
from ..evidence import Evidence, Place, get_ids, get_place, group_by
from ..finding import Finding
from ..rule import Rule, list_changes, report
from ..rules.break_even import make_eager_call_counter
from ..settings import Settings, merge_fixes
from .call_sites import find_call_fields
from .recompile_findings import find_recompiles

_LIMIT = Rule(
    "recompile_limit",
    title="{function} hit {limit}: {consequence}",
    action="{causes}{not_counted}",
    severity="high",
    cost="each version is another compile, and a call checks the guards of all entries before its own",
)
RULES = (_LIMIT,)

#: torch's defaults.
DEFAULT_LIMITS = {"recompile_limit": 8, "accumulated_recompile_limit": 256}
#: A limit is raised by this factor where none of the causes has a fix.
_RAISE_BY = 8
_NOT_COUNTED = " Its eager calls were not counted; watch(calls=True) counts them, on Python 3.12 or later."


def find_limits(evidence: Evidence) -> list[Finding]:
    """One finding per function, region and limit that it hit."""
    hits = [row for row in evidence.rows(Compile) if row.limit is not None]
    causes, describe_eager = find_recompiles(evidence), make_eager_call_counter(evidence)
    recompiles = group_by(evidence.rows(Recompile), lambda row: (get_place(row), row.region)) if hits else {}
    found = []
    for (place, region, *_), rows in group_by(hits, _make_key).items():
        own = get_ids(recompiles.get((place, region), ()))
        finding = _make_finding(rows, _select_causes(causes, place, own), describe_eager(place))
        found.append(replace(finding, **find_call_fields(evidence, rows)))
    return found


def _make_key(row: Compile) -> tuple[Place, int | None, str | None, int | None]:
    return get_place(row), row.region, row.limit, row.limit_value


def _select_causes(causes: list[Finding], place: Place, recompiles: Iterable[int]) -> list[Finding]:
    """The findings of one function and region, the most frequent first."""
    numbers = {*recompiles}
    own = [cause for cause in causes if place in cause.places and not numbers.isdisjoint(cause.evidence)]
    return sorted(own, key=lambda cause: (-cause.count, -cause.seconds_lost, cause.title))


def _make_finding(rows: list[Compile], causes: list[Finding], eager: str | None) -> Finding:
    hit, limit = rows[0], rows[0].limit or ""
    place, fix = get_place(hit), _choose_fix(hit, causes)
    raise_it = CodeChange(text=_write_argument(hit)) if _is_raised_by_argument(hit, causes) else None
    facts = {
        "function": format_function(*place),
        "limit": _name_limit(hit),
        "consequence": _describe_consequence(hit, eager),
        "causes": _write_suggestion(hit, causes),
        "not_counted": _NOT_COUNTED if eager is None and not _has_raised(hit) else "",
    }
    return report(
        _LIMIT,
        rows,
        facts,
        seconds_lost=sum(cause.seconds_lost for cause in causes),
        fix=fix,
        changes=list_changes(fix, raise_it),
        kind=limit,
        places=(place,),
    )


def _name_limit(hit: Compile) -> str:
    """`recompile_limit (2, an argument of torch.compile)`: the limit in force, if it is not torch's default."""
    is_default = hit.limit_value in (None, DEFAULT_LIMITS.get(hit.limit or "")) and not hit.limit_argument
    parts = [] if is_default else [str(hit.limit_value)]
    parts += ["an argument of torch.compile"] if hit.limit_argument else []
    parts += [f"region {hit.region} of isolate_recompiles"] if hit.region is not None else []
    name = format_line(hit.limit or "", 60)
    return f"{name} ({', '.join(parts)})" if parts else name


def _has_raised(hit: Compile) -> bool:
    return hit.on_failure not in (None, "eager")


def _describe_consequence(hit: Compile, eager: str | None) -> str:
    if _has_raised(hit):
        reasons = {"fullgraph": "fullgraph=True", "error_on_graph_break": "error_on_graph_break(True)"}
        return f"torch raised an exception ({reasons.get(hit.on_failure or '', 'fail_on_recompile_limit_hit')})"
    return eager or "it silently runs eagerly from then on"


def _write_suggestion(hit: Compile, causes: list[Finding]) -> str:
    name = "the argument recompile_limit of torch.compile" if hit.limit_argument else _write_setting(hit)
    raise_it = f"{name} only if all those compiled versions are intended."
    if not causes:
        return f"Raise {raise_it} What recompiled it was not collected."
    top = "; ".join(f"{cause.what_changed} ({format_times(cause.count)})" for cause in causes[:2])
    return f"Fix what recompiles it: {top}. Raise {raise_it}"


def _write_setting(hit: Compile) -> str:
    return f"torch._dynamo.config.{format_line(hit.limit or '', 60)}"


def _write_argument(hit: Compile) -> str:
    return f"Raise the argument: torch.compile(..., recompile_limit={_compute_higher(hit)})."


def _compute_higher(hit: Compile) -> int:
    return _RAISE_BY * (hit.limit_value or DEFAULT_LIMITS[hit.limit or ""])


def _is_raised_by_argument(hit: Compile, causes: list[Finding]) -> bool:
    """True if only a higher limit helps, and torch.compile has its own, which no setting changes."""
    return bool(hit.limit_argument) and all(cause.is_expected for cause in causes)


def _choose_fix(hit: Compile, causes: list[Finding]) -> Settings | None:
    """The fixes of its causes; a higher limit only where all of them are expected, so that each version is needed."""
    fix = merge_fixes(cause.fix for cause in causes)
    if fix or hit.limit not in DEFAULT_LIMITS or hit.limit_argument or not all(c.is_expected for c in causes):
        return fix or None
    return {hit.limit: _compute_higher(hit)}
