"""Find what an export could not do soundly, and what to change in the model."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from ...events import ExportProblem
from ...formatting import format_line, format_place
from ..evidence import Evidence, find_first, group_by, kept_of
from ..finding import Finding
from ..rule import Rule, report

#: What the texts of a rule name.
Facts = dict[str, str]


@kept_of(ExportProblem)
def find_export_problems(evidence: Evidence) -> list[Finding]:
    """One finding per operator, or per expression at a line."""
    known = [row for row in evidence.rows(ExportProblem) if row.problem in _PROBLEMS]
    groups = group_by(known, lambda row: (row.problem, row.op or row.expression, row.user_file, row.user_line))
    return [_report(rows) for rows in groups.values()]


def _report(rows: list[ExportProblem]) -> Finding:
    rule, describe = _PROBLEMS[rows[0].problem or ""]
    place = format_place(rows[0].user_file, rows[0].user_line)
    details = dict.fromkeys(str(row.result) for row in rows if row.result is not None)
    return report(rule, rows, {"place": f" at {place}" if place else "", **describe(rows)}, details=tuple(details))


def _describe_operator(rows: list[ExportProblem]) -> Facts:
    """An operator's name as in a message, and as torch.library takes it: `mylib::foo` of `mylib.foo.default`."""
    op = find_first(row.op for row in rows) or "an operator"
    namespace, _, rest = op.partition(".")
    return {
        "op": format_line(op),
        "name": f"{namespace}::{rest.removesuffix('.default')}" if rest else op,
    }


def _describe_data_dependence(rows: list[ExportProblem]) -> Facts:
    return {
        "expression": format_line(find_first(row.expression for row in rows) or "an expression"),
        "result": format_line(find_first(row.result for row in rows) or "a constant"),
    }


def _describe_constraint(rows: list[ExportProblem]) -> Facts:
    symbols = find_first(row.symbols for row in rows) or {}
    sizes = ", ".join(f"{symbol} is {source}" for symbol, source in symbols.items())
    return {
        "expression": format_line(find_first(row.expression for row in rows) or "a guard"),
        "sizes": f" ({format_line(sizes)})" if sizes else "",
    }


_rule = partial(Rule, severity="medium", is_at_user_line=True, docs="export")
#: The problem as torch reports it -> its rule, and what the texts of the rule name.
_PROBLEMS: dict[str, tuple[Rule, Callable[[list[ExportProblem]], Facts]]] = {
    "missing_fake_kernel": (
        _rule(
            "export_missing_fake_kernel",
            title="Export: {op} has no fake kernel, so export cannot know the sizes of its outputs",
            action="Register a fake kernel whose outputs have the right sizes, dtypes and strides: "
            '`@torch.library.register_fake("{name}")`.',
        ),
        _describe_operator,
    ),
    "mismatched_fake_kernel": (
        _rule(
            "export_mismatched_fake_kernel",
            title="Export: the fake kernel of {op} and the operator give different results: {reason}",
            action='Correct the function under `@torch.library.register_fake("{name}")`; '
            "`torch.library.opcheck(torch.ops.{op}, args)` tests it.",
        ),
        _describe_operator,
    ),
    "data_dependent": (
        _rule(
            "export_data_dependent",
            title="Export: {expression}{place} depends on the data; the exported program assumes {result}, as in the "
            "example",
            action="If it always holds, declare it before that line with `torch._check(...)`. If both cases occur, use "
            "`torch.cond(...)` or `torch.where(...)`, or code that is correct in both cases.",
        ),
        _describe_data_dependence,
    ),
    "constraint": (
        _rule(
            "export_constraint",
            title="Export: the sizes marked dynamic require {expression}{place}{sizes}",
            action="Declare it in dynamic_shapes (`Dim(name, min=..., max=...)`, one Dim for equal sizes), let torch "
            "choose with `Dim.AUTO`, or make that size static.",
        ),
        _describe_constraint,
    ),
}
RULES = tuple(rule for rule, _ in _PROBLEMS.values())
