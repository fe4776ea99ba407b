"""Accepted causes: a text file for git, which `compilediag check` and the pytest plugin compare a session with.

A cause is a finding on the program, named by its fingerprint. What depends on caches, on the machine or on the
recording is none: it differs between two runs of the same program.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace

from ..decode.guards.path import format_expression
from ..events import Rows
from ..formatting import format_function, format_line, get_basename
from . import diagnose
from .evidence import group_by
from .finding import Finding
from .rules import autotune, break_even, caches, coverage, ranks

FORMAT = "compilediag.baseline/1"
_HEAD = f"""\
# Causes that `compilediag check --baseline` accepts. With --update it writes this file again: reasons stay, causes that
# did not occur are removed. An entry without a count accepts its cause however often it occurs.
format = "{FORMAT}"
"""
_OF_ONE_RUN = {rule.id for rules in (autotune, break_even, caches, coverage) for rule in rules.RULES} | {ranks.CACHES}


@dataclass(frozen=True)
class AcceptedCause:
    """An entry: `function` and `cause` are for the reader, `reason` is the user's. `count` is how often the cause may
    occur, None any number of times.
    """

    fingerprint: str
    rule: str = ""
    function: str = ""
    cause: str = ""
    count: int | None = None
    reason: str = ""


#: Fingerprint -> what is accepted.
Baseline = Mapping[str, AcceptedCause]


@dataclass(frozen=True)
class Deviations:
    """How the causes of a session differ from a baseline; a cause of the session is all findings on it."""

    new: Sequence[Sequence[Finding]]
    worse: Sequence[tuple[AcceptedCause, Sequence[Finding]]]
    fixed: Sequence[AcceptedCause]


def group_causes(data: Rows) -> dict[str, list[Finding]]:
    """Fingerprint -> the findings of a session on that cause, the most expensive cause first."""
    findings = (finding for finding in diagnose(data) if finding.rule not in _OF_ONE_RUN)
    return group_by(findings, lambda finding: finding.fingerprint)


def count_occurrences(findings: Sequence[Finding]) -> int:
    """How often a cause occurred."""
    return sum(finding.count for finding in findings)


def compare_with_baseline(data: Rows, baseline: Baseline) -> Deviations:
    """Find the causes that a baseline does not have, those that occur more often than it accepts, and those that are
    gone.
    """
    causes = group_causes(data)
    again = [(cause, causes[name]) for name, cause in baseline.items() if name in causes]
    return Deviations(
        new=[findings for name, findings in causes.items() if name not in baseline],
        worse=[
            (cause, findings)
            for cause, findings in again
            if cause.count is not None and count_occurrences(findings) > cause.count
        ],
        fixed=[cause for name, cause in baseline.items() if name not in causes],
    )


def accept(data: Rows, earlier: Baseline | None = None) -> Baseline:
    """The baseline that accepts the causes of a session as often as they occurred, with the reasons of an earlier one.

    An entry of the earlier one without a count stays without.
    """
    made = {}
    for name, findings in group_causes(data).items():
        first, count = findings[0], count_occurrences(findings)
        known = (earlier or {}).get(name, AcceptedCause(name, count=count))
        made[name] = replace(
            known,
            rule=first.rule,
            function=_name_place(first),
            cause=_name_cause(first),
            count=None if known.count is None else count,
        )
    return made


def _name_place(finding: Finding) -> str:
    """The function and its file, without a line: an edit above it must not change the file in git."""
    if finding.function is None:
        return format_line(get_basename(finding.user_file or finding.file or "?"), 60)
    return format_function(finding.function, finding.file, None)


def _name_cause(finding: Finding) -> str:
    """The guarded value and the kind of guard, or the line of code; no values, which may be secret or differ by run."""
    if finding.source is None:
        return format_line(finding.user_code or "", 100)
    kind = (finding.kind or "other").replace("_", " ")
    return f"{format_line(format_expression(finding.source), 100)} ({kind})"


def format_baseline(baseline: Baseline) -> str:
    """A baseline as text: TOML, one table per cause, in an order that does not depend on the run."""
    ordered = sorted(baseline.values(), key=lambda one: (one.function, one.rule, one.cause, one.fingerprint))
    return "\n".join([_HEAD, *map(_format_cause, ordered)])


def _format_cause(cause: AcceptedCause) -> str:
    values = {field.name: getattr(cause, field.name) for field in fields(cause)}
    lines = [f"{name} = {_format_value(value)}" for name, value in values.items() if value is not None]
    return "\n".join(["[[accepted]]", *lines, ""])


def _format_value(value: str | int) -> str:
    """A string of TOML is one of JSON, except that it has DEL as an escape."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def parse_baseline(text: str) -> Baseline:
    """Read a baseline. ValueError, with what is wrong in a few words, if the text is none."""
    values = tomllib.loads(text)
    if values.get("format") != FORMAT:
        raise ValueError(f"it has no line format = {json.dumps(FORMAT)}")
    unknown = [*(values.keys() - {"format", "accepted"})]
    entries = values.get("accepted", [])
    if unknown or not isinstance(entries, list):
        raise ValueError(f"unknown entry {unknown[0]!r}" if unknown else "accepted is not a list of tables")
    causes = [_read_cause(entry) for entry in entries]
    found = {cause.fingerprint: cause for cause in causes}
    if len(found) < len(causes):
        twice = next(one.fingerprint for one in causes if found[one.fingerprint] is not one)
        raise ValueError(f"{twice!r} is accepted twice")
    return found


def _read_cause(entry: object) -> AcceptedCause:
    values = entry if isinstance(entry, dict) else {}
    name, count = values.get("fingerprint"), values.get("count")
    if not isinstance(name, str):
        raise ValueError("an entry has no fingerprint")
    for key, value in values.items():
        if key not in AcceptedCause.__annotations__:
            raise ValueError(f"{name!r} has the unknown key {key!r}")
        if not isinstance(value, int if key == "count" else str):
            raise ValueError(f"{key} of {name!r} is {value!r}")
    if isinstance(count, bool) or (count is not None and count < 0):
        raise ValueError(f"count of {name!r} is {count!r}")
    return AcceptedCause(**values)
