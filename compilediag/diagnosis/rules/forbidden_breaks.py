"""Report a graph break at which torch raised an exception, because a setting of the user allows none."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ...decode.call_stacks import is_torch_file
from ...decode.records.graph_break_text import parse_graph_break
from ...events import Compile, GraphBreak
from ...formatting import format_first_line, format_function, format_place, format_times
from ..break_remedies import describe_remedy
from ..change import CodeChange
from ..evidence import find_first, get_ids, get_place, make_place_fields, sum_seconds
from ..finding import Finding

#: How torch announces a graph break in the function that a higher order operator runs.
_IN_OPERATOR = re.compile(r"\A.{0,200}Got graph break/error:\s*", re.S)
_BUILTIN = re.compile(r"calling builtin `(\w+)`")


@dataclass(frozen=True)
class ForbiddenBreak:
    """A setting that turns a graph break into an exception, and how to allow the break after all."""

    name: str
    allow: str


#: Values of `on_failure` -> the setting.
FORBIDDEN_BREAKS = {
    "fullgraph": ForbiddenBreak(
        "torch.compile(fullgraph=True)",
        "To allow the graph break, compile without fullgraph=True: that line then runs eagerly between two graphs.",
    ),
    "error_on_graph_break": ForbiddenBreak(
        "torch._dynamo.error_on_graph_break(True)",
        "To allow the graph break, put that line under `with torch._dynamo.error_on_graph_break(False):`. It then runs "
        "eagerly between two graphs.",
    ),
}
_OPERATOR = ForbiddenBreak(
    "an operator that runs a function (nested_compile_region, cond, checkpoint, ...)",
    "Otherwise, call that line outside of the function that the operator runs.",
)


def find_forbidding(row: Compile) -> ForbiddenBreak | None:
    """What allowed no graph break at a compile that failed; None if it failed for another reason."""
    if row.on_failure in FORBIDDEN_BREAKS:
        return FORBIDDEN_BREAKS[row.on_failure]
    return _OPERATOR if row.on_failure != "eager" and _IN_OPERATOR.match(row.fail_reason or "") else None


def report_forbidden_break(rows: Sequence[Compile], setting: ForbiddenBreak) -> Finding:
    """One finding for the exceptions of one function: where torch raised, and what to change there."""
    first, place = rows[0], get_place(rows[0])
    reason = format_first_line(_read_reason(first)) or "no reason given"
    where = format_place(first.user_file, first.user_line)
    remedy, advice = describe_remedy([_read_break(first)])
    action = advice or "Remove what torch cannot trace from the function."
    return Finding(
        rule="compile_failed",
        severity="high",
        title=f"torch raised an exception {format_times(len(rows))} {_describe_place(first, where)}: {setting.name} "
        f"allows no graph break: {reason}",
        seconds_lost=sum_seconds(row.duration_s for row in rows),
        evidence=get_ids(rows),
        suggestion=f"{action} {setting.allow}",
        fix=remedy.settings if remedy else None,
        changes=(remedy or CodeChange(text=action), CodeChange(text=setting.allow)),
        count=len(rows),
        details=(reason,),
        user_file=find_first(row.user_file for row in rows),
        user_line=find_first(row.user_line for row in rows),
        **make_place_fields(place),
    )


def _describe_place(row: Compile, where: str) -> str:
    """Where torch raised. The function can be one of torch's, which calls the user's."""
    if is_torch_file(row.file or "") and where:
        return f"at {where}"
    function = format_function(*get_place(row))
    return f"in {function} at {where}" if where else f"in {function}"


def _read_reason(row: Compile) -> str:
    return _IN_OPERATOR.sub("", row.fail_reason or "")


def _read_break(row: Compile) -> GraphBreak:
    """The graph break that a compile failed at, from its exception, which names a built-in function that was called."""
    text = _read_reason(row)
    called = _BUILTIN.search(text)
    return replace(
        parse_graph_break(text, row.time_ns, row.compile_id, row.user_file, row.user_line),
        user_code=f"{called[1]}(" if called else None,
        compile_key=row.compile_key,
    )
