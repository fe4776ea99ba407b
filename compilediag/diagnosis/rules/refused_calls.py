"""Findings of calls that torch did not compile: because of a stance, or because their code was compiled ahead of time.

A refused call has the guards that a recompile would have, so its root causes are found in the same way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, TypeVar

from ...events import Compile, Event, Recompile, RefusedCall, RowList, Rows
from ...formatting import format_function, format_place, format_times
from ..causes.call_sites import find_call_fields
from ..causes.cause import Cause, find_causes
from ..evidence import Evidence, get_place, group_by, kept_of, make_place_fields
from ..finding import Finding, get_severity, name_findings
from ..rule import Rule, list_changes, report
from .recompiles import advise, describe_cause

E = TypeVar("E", bound=Event)

_SHARED = {field.name for field in fields(Recompile)} & {field.name for field in fields(RefusedCall)}


@dataclass(frozen=True)
class Refuser:
    """What refuses calls: what it does, and its worst severity, which is high if it raises an exception.

    `no_entry` is what to do if the function has no compiled code, `known_values` is what else helps if all values are
    known.
    """

    does: str
    severity: str
    no_entry: str
    known_values: str

    def describe_calls(self, place: str, count: int) -> str:
        """`forward (model.py:12) ran eagerly 3x`."""
        return f"{place} {'raised an exception' if self.severity == 'high' else 'ran eagerly'} {format_times(count)}"


_CALL_FIRST = "Call it once before the stance is set: nothing was compiled for it."
_WARM_UP = "Or call it once with each of these values before the stance is set: each then has a compiled version."
_REFUSERS = {
    "eager_on_recompile": Refuser(
        "the stance eager_on_recompile{at} compiles nothing new",
        "medium",
        _CALL_FIRST,
        _WARM_UP,
    ),
    "fail_on_recompile": Refuser(
        "the stance fail_on_recompile{at} allows no compile",
        "high",
        _CALL_FIRST,
        _WARM_UP,
    ),
    "force_eager": Refuser(
        "the stance force_eager{at} turns torch.compile off",
        "low",
        'Set torch.compiler.set_stance("default") where compiled code is to run.',
        "",
    ),
    "aot_compile": Refuser(
        "its code was compiled ahead of time for other inputs",
        "high",
        "Compile it ahead of time with these inputs.",
        "Or compile it ahead of time for each of these inputs, and choose the compiled function by the input.",
    ),
}
_REFUSED = Rule("refused_calls", title="{calls}: {refusal}{what}", action="{action}")
_UNCHECKED = Rule(
    "unchecked_guards",
    title="the stance skip_guard_eval_unsafe is set{at}: guards are not checked",
    action="While it is set, torch only checks the guards that distinguish the compiled versions of a function from "
    "each other. A call that none of them fits can silently run one of them, and nothing records that. Before you set "
    'it, call each function with every kind of input under torch.compiler.set_stance("fail_on_recompile"), which '
    "raises an exception where a compiled version is missing.",
    severity="low",
)
RULES = (_REFUSED, _UNCHECKED)


class RefusedRows:
    """The rows of a session as if its refused calls, and nothing else, had recompiled."""

    def __init__(self, data: Rows, refused: Sequence[RefusedCall]):
        self._data = data
        compiles = [Compile(**_copy(row, "function", "file", "line", "stack")) for row in refused]
        last = max((row.event_id or 0 for row in data.rows(Compile)), default=0)
        numbered = [replace(row, event_id=last + number) for number, row in enumerate(compiles, 1)]
        recompiles = [Recompile(**_copy(row, *_SHARED)) for row in refused]
        self._own = RowList([*data.rows(Compile), *numbered, *recompiles])

    @property
    def meta(self) -> Any:
        """What the session says about the user's own code."""
        return getattr(self._data, "meta", {})

    def rows(self, kind: type[E]) -> Sequence[E]:
        """The events of one kind."""
        return (self._own if kind in (Compile, Recompile) else self._data).rows(kind)


def _copy(row: RefusedCall, *names: str) -> dict[str, Any]:
    return {name: getattr(row, name) for name in ("time_ns", "compile_key", "rank", "pid", *names)}


@kept_of(RefusedCall)
def find_refused_calls(evidence: Evidence) -> list[Finding]:
    """One finding per cause for which calls were refused, and one per stance that checks nothing."""
    rows = evidence.rows(RefusedCall)
    unchecked = []
    for row in rows:
        if row.ran == "unchecked":
            set_at = format_place(row.set_file, row.set_line)
            facts = {"at": f" at {set_at}" if set_at else ""}
            no_place = make_place_fields((None, None, None))
            user = {"user_file": row.set_file, "user_line": row.set_line}
            changes = list_changes(str(_UNCHECKED.action))
            unchecked.append(report(_UNCHECKED, [row], facts, changes=changes, **no_place, **user))
    groups = group_by((row for row in rows if row.refused_by in _REFUSERS), lambda row: row.refused_by or "")
    found = [*unchecked, *(finding for name, found in groups.items() for finding in _report(evidence, name, found))]
    return name_findings(evidence, found)


def _report(data: Rows, name: str, rows: Sequence[RefusedCall]) -> list[Finding]:
    by_key = group_by(rows, lambda row: row.compile_key)
    first = [found[0] for found in by_key.values()]
    counts = {key: sum(row.count or 0 for row in found) for key, found in by_key.items()}
    with_guards = [row for row in first if row.guard_kind is not None]
    causes = find_causes(RefusedRows(data, with_guards)) if with_guards else []
    without = group_by((row for row in first if row.guard_kind is None), get_place)
    refused = RefusedRows(data, first)
    by_compile = {row.compile_key: row for row in with_guards}
    return [
        *(
            _report_cause(name, cause, counts, _format_setting(by_compile[cause.caused[0].compile_key]))
            for cause in causes
            if cause.is_first
        ),
        *(
            replace(_report_eager(name, found, counts), **find_call_fields(refused, found))
            for found in without.values()
        ),
    ]


def _format_setting(row: RefusedCall) -> str:
    """`, set at train.py:12,`: the line that set the stance; "" if it is not known."""
    set_at = format_place(row.set_file, row.set_line)
    return f", set at {set_at}," if set_at else ""


def _report_cause(name: str, cause: Cause, counts: dict[str | None, int], set_at: str) -> Finding:
    refuser, advice, is_ahead = _REFUSERS[name], advise(cause), name == "aot_compile"
    # Inputs of `aot_compile` are not marked where compiled code is called.
    applicable = (change for change in advice.changes if change.can_be_applied)
    advice = replace(advice, changes=tuple(change for change in applicable if not (is_ahead and change.edits)))
    action = "" if is_ahead else advice.action
    if advice.changes:
        # Before the stance is set, since it must be in force when the function is compiled.
        code = "; ".join(advice.changes[0].code.splitlines())
        action = f"Before {'aot_compile' if is_ahead else 'its first call'}: {code}."
    count = sum(counts.get(row.compile_key, 0) for row in cause.caused)
    facts = {
        "calls": refuser.describe_calls(cause.place_text, count),
        "refusal": refuser.does.format(at=set_at),
        "what": f": {advice.what_changed}",
        "action": " ".join(filter(None, (action, refuser.known_values))),
    }
    return report(
        _REFUSED,
        (),
        facts,
        severity="high" if refuser.severity == "high" else get_severity(0.0, count, refuser.severity),
        changes=(*advice.changes, *list_changes(refuser.known_values)),
        count=count,
        **describe_cause(cause, advice),
    )


def _report_eager(name: str, rows: Sequence[RefusedCall], counts: dict[str | None, int]) -> Finding:
    """Calls of a function that has no compiled code, or whose compiled code is not looked up."""
    refuser, place = _REFUSERS[name], get_place(rows[0])
    count = sum(counts.get(row.compile_key, 0) for row in rows)
    facts = {
        "calls": refuser.describe_calls(format_function(*place), count),
        "refusal": refuser.does.format(at=_format_setting(rows[0])),
        "what": "",
        "action": refuser.no_entry,
    }
    changes = list_changes(refuser.no_entry)
    return report(_REFUSED, rows, facts, severity=refuser.severity, changes=changes, count=count, places=(place,))
