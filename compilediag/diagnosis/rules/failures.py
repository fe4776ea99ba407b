"""Find functions that are not compiled: compiles that failed, and functions that torch runs eagerly."""

from __future__ import annotations

import builtins
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from ...decode.call_stacks import is_called_code, is_torch_file
from ...decode.guards.path import format_expression, format_source
from ...decode.records.torch_messages import BREAK_ID
from ...events import Compile, Recompile
from ...formatting import (
    format_amount,
    format_first_line,
    format_function,
    format_line,
    format_lost,
    format_place,
    get_class_name,
    is_resumed,
)
from ..causes.call_sites import find_call_fields, find_compiled_call
from ..change import CodeChange
from ..evidence import Evidence, Place, Stacks, find_first, get_place, group_by, is_timed, kept, sum_seconds
from ..finding import Finding, get_severity
from ..recipes import find_recipe
from ..rule import Rule, begin_lower, report
from .break_even import make_eager_call_counter
from .graph_breaks import (
    CALLS_TO_DISABLE,
    describe_remedy,
    find_hint,
    is_break,
    is_torchs_own,
    list_all_breaks,
    read_break,
)
from .guards_on_objects import COMPILE_TRANSFORM, IN_TRANSFORM

_NOTHING = Rule(
    "nothing_to_compile",
    title="{function} silently runs eagerly: its first call had nothing to compile",
    action="Decide outside of the function whether there is work to do, or do the work at each call, with a neutral "
    "value if necessary.",
    why="A call that does nothing with tensors, such as one that returns its input, turns torch.compile off for that "
    "function.",
    severity="low",
    docs="skipped",
)
_EAGER = Rule(
    "runs_eagerly",
    title="{function} is not compiled and runs eagerly: {reason}{where}{since}",
    action="{advice}",
    severity="medium",
    docs="skipped",
)
COMPILE_FAILED = "compile_failed"
_FAILED = Rule(
    COMPILE_FAILED,
    title="{function} failed to compile {times}, {lost}: {error}",
    action="{advice}",
    docs="trouble",
)
_FORBIDDEN = replace(
    _FAILED,
    title="torch raised an exception {times} {place}: {setting} allows no graph break: {reason}",
    action="{action} {allow}",
    severity="high",
)
RULES = (_NOTHING, _EAGER, _FAILED)

#: torch's ids of graph breaks after which it runs a function eagerly -> its words in a text without an id.
_IN_LOOP, _SKIPPED, _IN_TRANSFORM = "GB7000", "GB4297", "GB0149"
_WORDS = {
    _IN_LOOP: "graph break in loop",
    _SKIPPED: "torch._dynamo.skip_frame()",
    _IN_TRANSFORM: "Unsupported functorch tracing attempt",
}
#: torch's words on a frame that it runs eagerly; they have no id.
_TO_EAGER = "falling back to eager"
#: torch's hints.
_HINT = re.compile(r"^  Hint: ([^\n]*)", re.M)
_NO_LONGER = (
    "At one of these calls nothing was left to compile. Since then torch silently runs the function eagerly and no "
    "longer uses its compiled code."
)

_REMOVE_SKIP = "Remove that call: torch runs the whole function without compiling it."
_LEAVE_BLOCK = (
    "Move {} out of the loop, with block or try block, or move the body of the block into a function of its "
    "own, which is then compiled by itself. torch continues after a graph break, but not inside such a block. "
    "torch.compile(fullgraph=True) raises an error instead."
)
_HIDDEN = "torch._dynamo.config.suppress_errors hides the exception; set it to False to get it."
#: torch runs a function eagerly after this exception, whatever `suppress_errors` is.
_WRONG_USE = "UserError"
_NO_RECOMPILES = (
    "torch._dynamo.config.error_on_recompile allows no recompile. Fix its cause, which has a finding of its own, or "
    "set torch._dynamo.config.error_on_recompile = False."
)


@kept
def find_failures(evidence: Evidence) -> list[Finding]:
    """Compiles that ended in an exception, one finding per function and exception."""
    failed = [row for row in evidence.rows(Compile) if row.outcome == "failed" and row.limit is None]
    if not failed:
        return []

    def get_key(row: Compile) -> tuple[Place, str | None, str, int | None]:
        # A setting that allows no graph break raises at each line that has one.
        line = row.user_line if find_forbidding(row) is not None else None
        return get_place(row), row.fail_type, _get_error(row), line

    groups = group_by(failed, get_key)
    count_calls, stacks = make_eager_call_counter(evidence), evidence.stacks
    findings = []
    for (place, *_), rows in groups.items():
        if _runs_eagerly(rows):
            if _is_graph_break(rows) and is_torchs_own(evidence, read_break(rows[0])):
                continue
            # What the function calls is compiled by itself, only because the function runs eagerly.
            callees = [
                row
                for row in evidence.rows(Recompile)
                if get_place(row) != place
                if any((frame.function, frame.file) == place[:2] for frame in stacks.walk(stacks.find(row.compile_key)))
            ]
            found = _report_eager(rows, count_calls(place), callees)
        elif (setting := find_forbidding(rows[0])) is not None:
            found = _report_forbidden_break(rows, setting)
        else:
            found = _report_failure(rows, stacks)
        findings.append(replace(found, **find_call_fields(evidence, rows)))
    return findings


def add_empty_compiles(evidence: Evidence, recompiles: list[Finding]) -> list[Finding]:
    """Add the functions that torch runs eagerly for good because one call had nothing to compile.

    torch applies that to all calls and drops what it compiled before. If that call was a recompile, the finding on its
    cause, in `recompiles`, says so. A function's first call is reported only if torch compiles the function for the
    user: what is called by code that runs eagerly, at a graph break or as a whole, is compiled by itself, and often has
    nothing to compile.
    """
    empty = [
        row
        for row in evidence.rows(Compile)
        if row.outcome == "empty"
        and not (is_resumed(row.function) or is_called_code(row.file or "") or (row.file or "").startswith("<"))
    ]
    if not empty:
        return recompiles
    had_code = {get_place(row) for row in evidence.rows(Compile) if row.outcome == "ok"}
    ended = (row for row in empty if row.is_recompile and get_place(row) in had_code)
    keys = {row.compile_key for row in ended if row.compile_key is not None}
    events = {row.event_id for row in evidence.rows(Recompile) if row.compile_key in keys}
    count_calls = make_eager_call_counter(evidence)
    findings = []
    for one in recompiles:
        if events.isdisjoint(one.evidence):
            findings.append(one)
            continue
        counts = [text for place in one.places if (text := count_calls(place)) is not None]
        since = f" ({'; '.join(counts)}.)" if counts else ""
        severity = "medium" if one.severity == "low" else one.severity
        findings.append(replace(one, severity=severity, suggestion=f"{one.suggestion} {_NO_LONGER}{since}"))
    broken = {row.compile_key for row in list_all_breaks(evidence)}
    whole = (row for row in empty if not row.is_recompile and row.compile_key not in broken)
    first = group_by((row for row in whole if not _is_called_eagerly(evidence, row, bool(broken))), get_place)
    return findings + [
        report(
            _NOTHING,
            rows,
            seconds_lost=sum_seconds(row.duration_s for row in rows),
            places=(place,),
            **find_call_fields(evidence, rows),
        )
        for place, rows in first.items()
    ]


def _is_called_eagerly(evidence: Evidence, row: Compile, has_breaks: bool) -> bool:
    """True if code that runs eagerly calls this function, within a compiled call. Without its stack, a graph break
    anywhere may be why.
    """
    frames = [*evidence.stacks.walk(evidence.stacks.find(row.compile_key))][::-1]
    begin = find_compiled_call(frames)
    return has_breaks if begin is None else any(not is_torch_file(each.file or "") for each in frames[begin:-1])


def _runs_eagerly(rows: list[Compile]) -> bool:
    """True if torch runs the function eagerly.

    A log has no `on_failure`. Then torch's text says so, or the function has one graph break and was not compiled
    again, as it is with fullgraph=True.
    """
    handled = {row.on_failure for row in rows if row.on_failure is not None}
    if handled:
        return handled == {"eager"}
    return _TO_EAGER in _get_reason(rows) or (len(rows) == 1 and _is_graph_break(rows))


def _get_reason(rows: list[Compile]) -> str:
    return find_first(row.fail_reason for row in rows) or ""


def _is_graph_break(rows: list[Compile]) -> bool:
    return is_break(next((row for row in rows if row.fail_type is not None), rows[0]))


def _get_error(row: Compile) -> str:
    """The first line of the reason, and the next one if the first only announces it."""
    lines = [line.strip() for line in (row.fail_reason or "")[:2000].splitlines() if line.strip()]
    is_announced = len(lines) > 1 and lines[0].endswith(":")
    return format_line(" ".join(lines[: 2 if is_announced else 1]), 160)


def _report_eager(rows: list[Compile], eager_calls: str | None, callees: Sequence[Recompile]) -> Finding:
    """A function that torch stopped compiling: at a graph break where it cannot continue, or at a hidden exception.
    `callees` are the recompiles of what it calls.
    """
    text, place = _get_reason(rows), format_place(rows[0].user_file, rows[0].user_line)
    leave = _LEAVE_BLOCK.format(f"what is at {place}" if place else "that call")
    at_break = _is_graph_break(rows) or _TO_EAGER in text
    reason = (format_first_line(text) if at_break else _describe_error(rows[0])) or "no reason given"
    remedy = None
    if at_break:
        remedy, register = describe_remedy([read_break(rows[0])])
        has_call = any(_has_break(text, each) for each in CALLS_TO_DISABLE)
        if _has_break(text, _SKIPPED) or (not has_call and remedy is not None and remedy.code.endswith(".")):
            remedy = None  # Words, and no setting: what to leave is said in any case.
        if has_call:
            advice = register
        elif _has_break(text, _IN_TRANSFORM):
            advice = f"{COMPILE_TRANSFORM} {IN_TRANSFORM}"
        elif remedy is not None:
            advice = f"{register} Or {begin_lower(leave)}"
        else:
            advice = f"{_REMOVE_SKIP if _has_break(text, _SKIPPED) else leave}{_quote_hint(text)}"
    elif get_class_name(rows[0].fail_type) == _WRONG_USE:
        advice = "Correct what the exception names: torch runs the function eagerly because of it."
    else:
        advice = f"{_advise(rows)} {_HIDDEN}"
    if callees:
        advice += f" What it calls is compiled by itself: {format_amount(len(callees), 'recompile')} of it."
    facts = {
        "reason": reason,
        "where": (", in a loop" if _has_break(text, _IN_LOOP) else "") + (f" at {place}" if at_break and place else ""),
        "since": f"; {eager_calls}" if eager_calls else "",
        "advice": advice,
    }
    return report(
        _EAGER,
        rows,
        facts,
        fix=remedy.settings if remedy else None,
        changes=(remedy,) if remedy else (),
        seconds_lost=sum_seconds(row.duration_s for row in rows),
        seconds_at_stake=sum_seconds(row.lost_s for row in callees),
        details=(reason,),
    )


def _has_break(text: str, break_id: str) -> bool:
    """True if a text of torch is about this kind of graph break."""
    ids = {f"GB{number}" for number in BREAK_ID.findall(text)}
    return break_id in ids or (not ids and _WORDS.get(break_id, break_id) in text)


def _describe_error(row: Compile) -> str:
    """The type of an exception and its first line."""
    return ": ".join(part for part in (format_line(row.fail_type or "", 80), _get_error(row)) if part)


def _quote_hint(text: str) -> str:
    hint = find_hint(_HINT.findall(text))
    return f" torch's hint: {format_line(hint, 240)}" if hint else ""


def _advise(rows: list[Compile]) -> str:
    text = _get_reason(rows)
    if get_class_name(rows[0].fail_type) == "RecompileError":
        return _NO_RECOMPILES
    if _is_graph_break(rows):
        return f"Remove that call: torch.compile(fullgraph=True) allows no graph break.{_quote_hint(text)}"
    return (
        'Find the step that fails: compile with backend="eager", then with backend="aot_eager". The exception comes '
        "from torch or from the backend."
    )


def _report_failure(rows: list[Compile], stacks: Stacks) -> Finding:
    timed = [row.duration_s for row in rows if is_timed(row.duration_s)]
    error = _describe_error(rows[0]) or "no reason given"
    violation, fields = _explain_violation(rows[0].fail_type, _get_reason(rows))
    advice = violation or _explain_traced(stacks, rows[0]) or _advise(rows)
    facts = {
        "lost": format_lost(sum(timed), len(timed), len(rows)),
        "error": error,
        "advice": advice,
    }
    return report(
        _FAILED,
        rows,
        facts,
        severity="high" if len(rows) > 1 else get_severity(max(sum(timed), 1.0), 1),
        seconds_lost=float(sum(timed)),
        details=(error,),
        **(fields or {"changes": (CodeChange(text=advice),)}),
    )


_FIXED = re.compile(
    r"You marked (L\[.*?\]\.size\(\)\[\d+\]) as dynamic but your code specialized it to be a constant \((-?\d+)\)"
)
_MARKED = re.compile(r"^[^\S\n]*- (You marked [^\n]*)", re.M)
_RANGE = re.compile(r"Not all values of .*? in the specified range .*? satisfy the generated guard ([^\n]+)")
_SOURCE = re.compile(r"[LG]\['[^\]]*'\](?:[\w.]|\[[^\]]*\])*\.size\(\)\[\d+\]")
_DOES_NOT_RAISE = "Use torch._dynamo.maybe_mark_dynamic, which does not raise: each size is then compiled separately."
_MARK_OTHER = (
    "If it has to equal the size of another input, mark that one as well: torch._dynamo.mark_dynamic(other, dim)."
)
#: A frame of the user's stack at the end of torch's message.
_FRAME = re.compile(r'File "([^"]+)", line (\d+), in [^\n]*\n\s+([^\n]+)')


def _explain_violation(fail_type: str | None, reason: str) -> tuple[str, dict[str, Any]]:
    """What does not allow a mark, with the ways to change it, and fields of the finding: these ways and the user's
    line; "" and nothing if the compile did not fail because of a mark.
    """
    if get_class_name(fail_type) != "ConstraintViolationError":
        return "", {}
    stack = reason.partition("User stack:")[2]
    frames = _FRAME.findall(stack)
    file, line, code = (frames[-1][0], int(frames[-1][1]), frames[-1][2].strip()) if frames else (None, None, None)
    where = f"`{format_line(code, 80)}` ({format_place(file, line)})" if code else "The code"
    if (found := _FIXED.search(reason)) is not None:
        size, number = _format_size(found[1]), found[2]
        text = f"{where} fixes {size} to {number}, but the size is marked dynamic."
        has_number = re.search(rf"(?<![\w.]){re.escape(number)}(?![\w.])", code or "") is not None
        ways = (_DOES_NOT_RAISE,) if has_number else (_MARK_OTHER, f"Otherwise {begin_lower(_DOES_NOT_RAISE)}")
    elif (found := _RANGE.search(reason)) is not None:
        condition = _SOURCE.sub(lambda size: _format_size(size[0]), found[1].strip())
        text = f"{where} is compiled for {format_line(condition, 120)} only, and the mark asks for more."
        ways = (
            "Mark the size with that range: torch._dynamo.mark_dynamic(x, dim, min=..., max=...).",
            "Or use torch._dynamo.maybe_mark_dynamic, which does not raise: each branch is then compiled separately.",
        )
    else:
        found = _MARKED.search(reason)  # torch's own sentence.
        text = format_line(found[1], 300) if found else f"{where} does not allow a size that is marked dynamic to vary."
        ways = ("Use torch._dynamo.maybe_mark_dynamic, which does not raise.",)
    changes = tuple(CodeChange(text=way) for way in ways)
    fields = {"changes": changes, "user_file": file, "user_line": line, "user_code": code}
    return f"{text} {' '.join(ways)}", fields


def _format_size(source: str) -> str:
    return format_expression(format_source(source))


def _explain_traced(stacks: Stacks, row: Compile) -> str | None:
    """What to do by the line that torch traced and the functions around the call; None if the compile did not fail
    while torch traced the code.

    An exception that is Python's own comes from the tracing: torch wraps those of backends into its own.
    """
    if row.user_file is None or not hasattr(builtins, get_class_name(row.fail_type)):
        return None
    files = tuple(frame.file or "" for frame in stacks.walk(row.stack))
    recipe = find_recipe("compile_failed", row.function or "", None, files)
    place = format_place(row.user_file, row.user_line)
    where = f"torch failed while it traced {place}."
    if recipe is not None:
        return f"{recipe.action} {recipe.why} {where}"
    return (
        f"Keep the call that leads to {place} out of the compiled code: move it out of the function, or put "
        f"@torch.compiler.disable on the function that makes it. {where}"
    )


#: How torch announces a graph break in the function that a higher order operator runs.
_IN_OPERATOR = re.compile(r"\A.{0,200}Got graph break/error:\s*", re.S)


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


def _report_forbidden_break(rows: Sequence[Compile], setting: ForbiddenBreak) -> Finding:
    """One finding for the exceptions of one function: where torch raised, and what to change there."""
    first = rows[0]
    where, function = format_place(first.user_file, first.user_line), format_function(*get_place(first))
    # The function can be one of torch's, which calls the user's.
    place = f"in {function}" if not where or not is_torch_file(first.file or "") else ""
    text = _IN_OPERATOR.sub("", first.fail_reason or "")
    reason = format_first_line(text) or "no reason given"
    remedy, advice = describe_remedy([read_break(first, text)])
    action = advice or "Remove what torch cannot trace from the function."
    return report(
        _FORBIDDEN,
        rows,
        {
            "place": f"{place} at {where}".strip() if where else place,
            "setting": setting.name,
            "reason": reason,
            "action": action,
            "allow": setting.allow,
        },
        seconds_lost=sum_seconds(row.duration_s for row in rows),
        fix=remedy.settings if remedy else None,
        changes=(remedy or CodeChange(text=action), CodeChange(text=setting.allow)),
        details=(reason,),
        user_file=find_first(row.user_file for row in rows),
        user_line=find_first(row.user_line for row in rows),
    )
