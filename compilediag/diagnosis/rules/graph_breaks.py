"""Find graph breaks by reason and line, and what removes them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from ...document import BREAK_PAGE
from ...events import GraphBreak, Recompile, Rows
from ...formatting import (
    format_amount,
    format_first_line,
    format_line,
    format_names,
    format_place,
    format_times,
    get_basename,
    is_resumed,
)
from ..causes.call_sites import find_call_fields
from ..change import CodeChange
from ..evidence import find_first, group_by, sum_seconds
from ..finding import Finding
from ..rule import Rule, report

_BREAK = Rule("graph_break", title="graph break at {where}, {times}: {reason}", action="{advice}", docs="breaks")
_STORM = Rule(
    "graph_break_storm",
    title="graph breaks at {where}, {times}: {reason}",
    action="{advice}",
    why="Each graph break splits the function into compiled parts with eager code between.",
    severity="medium",
    docs="breaks",
)
RULES = (_BREAK, _STORM)

#: torch's id of a graph break (torch/_dynamo/graph_break_registry.json) -> the setting that removes it. The hints name
#: it too, which counts for breaks without an id, and with one that is about more than that: GB0059 is any call of a
#: builtin function, and only for one that logs there is a setting.
_SETTINGS = {
    "GB0124": "capture_scalar_outputs",
    "GB0036": "capture_dynamic_output_shape_ops",
    "GB0291": "ignore_logging_functions",
    "": "reorderable_logging_functions",
}
_LOGGER = re.compile(r"(?<!\w)(?<!\w\.)((?:\w+\.)*\w+\.(?:debug|info|warning|error|critical|exception|log))\(")
_PRINT = re.compile(r"\b(print|(?:warnings\.)?warn)\(")
#: torch's words for a call with keyword arguments. When torch moves it, it drops them, or refuses from 2.15 on.
_KEYWORDS = "has_kwargs True"
_TEXTS = {
    "ignore_logging_functions": "Add the logging method to torch._dynamo.config.ignore_logging_functions.",
    "reorderable_logging_functions": "Add the function to torch._dynamo.config.reorderable_logging_functions.",
}


def find_remedy(row: GraphBreak) -> CodeChange | None:
    """The change that removes a graph break, where torch has one for it; None if the code has to be changed."""
    hints, code = " ".join(row.hints or ()), row.user_code or ""
    named = (name for name in _SETTINGS.values() if name in hints)
    name = (_SETTINGS.get(row.break_id) if row.break_id else None) or next(named, None)
    if name == "ignore_logging_functions":
        return _register(name, _LOGGER.search(code))
    if name == "reorderable_logging_functions":
        found = _PRINT.search(code)
        if found and _KEYWORDS in (row.explanation or ""):
            return CodeChange(
                text=f"Call {found[1]} without keyword arguments, which torch drops when it moves the call."
            )
        return _register(name, found) if found else None
    return CodeChange(settings={name: True}) if name else None


def _register(setting: str, found: re.Match[str] | None) -> CodeChange:
    return CodeChange(text=f"torch._dynamo.config.{setting}.add({found[1]})" if found else _TEXTS[setting])


def describe_remedy(rows: Sequence[GraphBreak]) -> tuple[CodeChange | None, str]:
    """The change that removes these graph breaks, or None, and what to do: that change in words, or torch's hint."""
    change = next((found for row in rows if (found := find_remedy(row)) is not None), None)
    if change is not None:
        before = "Before the first compiled call: "
        return change, change.code if change.code.endswith(".") else f"{before}{change.code}."
    hints = next((row.hints for row in rows if row.hints), [])
    explanation = next((row.explanation for row in rows if row.explanation), "")
    text = format_line(hints[0] if hints else explanation, 300)
    return None, f"{text}." if text and text[-1].isalnum() else text


#: What a finding on many lines has of the line with the most breaks.
_OF_LINE = ("fix", "changes", "file", "line", "user_file", "user_line", "user_code")
_BREAK_ID = re.compile(r"GB\d{1,6}", re.ASCII)
#: From so many breaks at one line on, the severity is medium.
MANY_BREAKS = 5
#: From so many lines on, the breaks of one kind in a file are one finding.
STORM_LINES = 3
#: torch's optimizers break graphs on purpose, and so does the function that torch was asked to skip.
_RESUMED_AT = re.compile(r"_at_(\d+)")
_TORCHS_OWN = re.compile(r"/torch/(?:optim/\w+|_dynamo/external_utils)\.py$")


def find_graph_breaks(data: Rows) -> list[Finding]:
    """One finding per kind of break and line, or per file if it breaks at many lines."""
    users = [row for row in data.rows(GraphBreak) if not _is_torchs_own(row)]
    groups = group_by(users, lambda row: (row.break_id, row.reason, row.user_file))
    resumed = [row for row in data.rows(Recompile) if is_resumed(row.function)]
    reports = (one for rows in groups.values() for one in _report_file(rows))
    return [
        replace(_add_recompiles(finding, rows, resumed), **find_call_fields(data, rows)) for finding, rows in reports
    ]


def _add_recompiles(finding: Finding, rows: list[GraphBreak], resumed: Iterable[Recompile]) -> Finding:
    """The recompiles of the code after these graph breaks: without the breaks there is no such code."""
    breaks = {(row.user_file, row.user_line) for row in rows}
    caused = [row for row in resumed if (row.file, _get_resumed_line(row)) in breaks]
    if not caused:
        return finding
    count = format_amount(len(caused), "recompile")
    return replace(
        finding,
        severity="medium",
        seconds_at_stake=sum_seconds(row.lost_s for row in caused),
        suggestion=f"{finding.suggestion} The code after it is compiled by itself: {count} of it.",
    )


def _get_resumed_line(row: Recompile) -> int | None:
    found = _RESUMED_AT.search(row.function or "")
    return int(found[1]) if found else None


def _is_torchs_own(row: GraphBreak) -> bool:
    return bool(_TORCHS_OWN.search((row.user_file or "").replace("\\", "/")))


def _report_file(rows: list[GraphBreak]) -> list[tuple[Finding, list[GraphBreak]]]:
    """Breaks of one kind in one file: one finding per line, or a single one if there are many lines."""
    by_line = group_by(rows, lambda row: row.user_line)
    if len(by_line) >= STORM_LINES:
        return [(_report_storm(rows, by_line), rows)]
    return [(_report_break(found), found) for found in by_line.values()]


def _report_storm(rows: list[GraphBreak], by_line: dict[int | None, list[GraphBreak]]) -> Finding:
    most = max(by_line.values(), key=len)
    lines = format_names([str(line) for line in sorted(line for line in by_line if line is not None)], 8)
    file = get_basename(find_first(row.user_file for row in rows) or "unknown file")
    one = _report_break(most)
    code = dict.fromkeys(format_line(row.user_code) for row in rows if row.user_code)
    return report(
        _STORM,
        rows,
        _describe(rows, f"{len(by_line)} lines of {file} ({lines})"),
        details=tuple(code),
        **{name: getattr(one, name) for name in _OF_LINE},
    )


def _report_break(rows: list[GraphBreak]) -> Finding:
    file = find_first(row.user_file for row in rows)
    line = find_first(row.user_line for row in rows)
    code = find_first(row.user_code for row in rows)
    remedy, text = describe_remedy(rows)
    return report(
        _BREAK,
        rows,
        _describe(rows, format_place(file, line) or "unknown line"),
        severity="medium" if len(rows) >= MANY_BREAKS else "low",
        fix=remedy.settings if remedy else None,
        changes=(remedy or CodeChange(text=text),) if remedy or text else (),
        file=file,
        line=line,
        details=(format_line(code),) if code else (),
        user_file=file,
        user_line=line,
        user_code=code,
    )


def _describe(rows: list[GraphBreak], where: str) -> dict[str, str]:
    reason = format_first_line(find_first(row.reason for row in rows) or "no reason given")
    return {"where": where, "times": format_times(len(rows)), "reason": reason, "advice": _advise(rows)}


def _advise(rows: list[GraphBreak]) -> str:
    """What removes it, or torch's own hint, and its page on this kind of break."""
    _, advice = describe_remedy(rows)
    break_id = find_first(row.break_id for row in rows)
    page = f"See {BREAK_PAGE}{break_id.lower()}.html" if break_id and _BREAK_ID.fullmatch(break_id) else ""
    return " ".join(part for part in (advice, page) if part) or "torch gave no hint."
