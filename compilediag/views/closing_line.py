"""One line that says what a job compiled, what its plan saves, and where its session is."""

from __future__ import annotations

import shlex

from ..diagnosis import find_gaps
from ..diagnosis.plan import Plan, make_plan
from ..events import SourceStatus
from ..formatting import format_amount, format_line, format_seconds
from ..storage.data import SessionData
from .totals import TotalsDict, compute_totals


def format_closing_line(
    data: SessionData, path: str | None, ending: str | None = None, keep: str = "--save run.cdiag keeps it"
) -> str:
    """`11 compiles, 4 recompiles, 2 min 46 s compiling; 3 changes save 1 min 20 s: compilediag plan run.cdiag`.

    `path`: the session as the user named it; None if it is not kept. `ending`: how the job ended, if not by itself.
    `keep`: how to keep the session.
    """
    with data.settled():
        totals, missing, plan = compute_totals(data), find_gaps(data), make_plan(data)
        reasons = [state.reason for state in data.rows(SourceStatus) if state.reason_code == "lost" and state.reason]
    parts = [format_line(ending)] if ending else []
    parts.append(_count_compiles(totals) if "compiles" not in missing else "compiles were not collected")
    parts += [format_line(reason) for reason in reasons[:1]]
    saving = describe_saving(plan)
    where = None if path is None else shlex.quote(path)
    if saving and where:
        parts.append(f"{saving}: compilediag plan {where}")
    else:
        parts += [saving] if saving else []
        parts.append(f"session: {where}" if where else f"the session was not kept ({keep})")
    return "compilediag: " + "; ".join(parts)


def describe_saving(plan: Plan) -> str:
    """`3 changes save 1 min 20 s`; "" for a plan without changes."""
    if not plan.steps:
        return ""
    changes, ending = format_amount(len(plan.steps), "change"), "s" if len(plan.steps) == 1 else ""
    if plan.seconds_saved:
        return f"{changes} save{ending} {format_seconds(plan.seconds_saved)}"
    return f"{changes} remove{ending} {plan.recompiles_saved} of {format_amount(plan.recompiles, 'recompile')}"


def _count_compiles(totals: TotalsDict) -> str:
    if not totals["compiles"]:
        return "nothing was compiled"
    counts = (format_amount(totals["compiles"], "compile"), format_amount(totals["recompiles"], "recompile"))
    return f"{', '.join(counts)}, {format_seconds(totals['compile_s'])} compiling"
