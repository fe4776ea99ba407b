"""Find what an export could not do soundly, and what to change in the model."""

from __future__ import annotations

from collections.abc import Callable

from ...events import ExportProblem, Rows
from ...formatting import format_first_line, format_line, format_place
from ..evidence import find_first, get_ids, group_by
from ..finding import Finding

#: What a finding says and suggests.
Text = tuple[str, str]


def find_export_problems(data: Rows) -> list[Finding]:
    """One finding per operator, or per expression at a line."""
    known = [row for row in data.rows(ExportProblem) if row.problem in _TEXTS]
    groups = group_by(known, lambda row: (row.problem, row.op or row.expression, row.user_file, row.user_line))
    return [_report(rows) for rows in groups.values()]


def _report(rows: list[ExportProblem]) -> Finding:
    problem = rows[0].problem or ""
    title, suggestion = _TEXTS[problem](rows)
    return Finding(
        rule=f"export_{problem}",
        severity="medium",
        title=title,
        seconds_lost=0.0,
        evidence=get_ids(rows),
        suggestion=suggestion,
        count=len(rows),
        user_file=find_first(row.user_file for row in rows),
        user_line=find_first(row.user_line for row in rows),
        user_code=find_first(row.user_code for row in rows),
        details=tuple(dict.fromkeys(str(row.result) for row in rows if row.result is not None)),
    )


def _format_place(rows: list[ExportProblem]) -> str:
    place = format_place(find_first(row.user_file for row in rows), find_first(row.user_line for row in rows))
    return f" at {place}" if place else ""


def _name_operator(rows: list[ExportProblem]) -> tuple[str, str]:
    """An operator's name as in a message, and as torch.library takes it: `mylib::foo` of `mylib.foo.default`."""
    op = find_first(row.op for row in rows) or "an operator"
    namespace, _, rest = op.partition(".")
    return format_line(op), f"{namespace}::{rest.removesuffix('.default')}" if rest else op


def _describe_missing_kernel(rows: list[ExportProblem]) -> Text:
    op, name = _name_operator(rows)
    return (
        f"Export: {op} has no fake kernel, so export cannot know the sizes of its outputs",
        "Register a fake kernel whose outputs have the right sizes, dtypes and strides: "
        f'`@torch.library.register_fake("{name}")`.',
    )


def _describe_wrong_kernel(rows: list[ExportProblem]) -> Text:
    op, name = _name_operator(rows)
    reason = format_first_line(find_first(row.reason for row in rows) or "no reason given")
    return (
        f"Export: the fake kernel of {op} and the operator give different results: {reason}",
        f'Correct the function under `@torch.library.register_fake("{name}")`; '
        f"`torch.library.opcheck(torch.ops.{op}, args)` tests it.",
    )


def _describe_data_dependence(rows: list[ExportProblem]) -> Text:
    expression = format_line(find_first(row.expression for row in rows) or "an expression")
    result = format_line(find_first(row.result for row in rows) or "a constant")
    return (
        f"Export: {expression}{_format_place(rows)} depends on the data; the exported program "
        f"assumes {result}, as in the example",
        "If it always holds, declare it before that line with `torch._check(...)`. If both cases occur, use "
        "`torch.cond(...)` or `torch.where(...)`, or code that is correct in both cases.",
    )


def _describe_constraint(rows: list[ExportProblem]) -> Text:
    expression = format_line(find_first(row.expression for row in rows) or "a guard")
    symbols = find_first(row.symbols for row in rows) or {}
    sizes = ", ".join(f"{symbol} is {source}" for symbol, source in symbols.items())
    return (
        f"Export: the sizes marked dynamic require {expression}{_format_place(rows)}"
        + (f" ({format_line(sizes)})" if sizes else ""),
        "Declare it in dynamic_shapes (`Dim(name, min=..., max=...)`, one Dim for equal sizes), let torch choose with "
        "`Dim.AUTO`, or make that size static.",
    )


_TEXTS: dict[str, Callable[[list[ExportProblem]], Text]] = {
    "missing_fake_kernel": _describe_missing_kernel,
    "mismatched_fake_kernel": _describe_wrong_kernel,
    "data_dependent": _describe_data_dependence,
    "constraint": _describe_constraint,
}
