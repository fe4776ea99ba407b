"""Find what an export could not do soundly, and what to change in the model."""

from __future__ import annotations

from functools import partial

from ...events import ExportProblem
from ...formatting import format_line, format_place
from ..evidence import Evidence, find_first, group_by, kept_of
from ..finding import Finding
from ..rule import Rule, report


@kept_of(ExportProblem)
def find_export_problems(evidence: Evidence) -> list[Finding]:
    """One finding per operator, or per expression at a line."""
    known = [row for row in evidence.rows(ExportProblem) if row.problem in _PROBLEMS]
    groups = group_by(known, lambda row: (row.problem, row.op or row.expression, row.user_file, row.user_line))
    findings = []
    for rows in groups.values():
        problem, place = rows[0].problem or "", format_place(rows[0].user_file, rows[0].user_line)
        op = find_first(row.op for row in rows) or "an operator"
        namespace, _, name = op.partition(".")
        expression = find_first(row.expression for row in rows)
        symbols = find_first(row.symbols for row in rows) or {}
        sizes = ", ".join(f"{symbol} is {source}" for symbol, source in symbols.items())
        facts = {
            "place": f" at {place}" if place else "",
            "op": format_line(op),
            # As torch.library takes it: `mylib::foo` of `mylib.foo.default`.
            "name": f"{namespace}::{name.removesuffix('.default')}" if name else op,
            "expression": format_line(expression or ("a guard" if problem == "constraint" else "an expression")),
            "result": format_line(find_first(row.result for row in rows) or "a constant"),
            "sizes": f" ({format_line(sizes)})" if sizes else "",
        }
        details = dict.fromkeys(str(row.result) for row in rows if row.result is not None)
        findings.append(report(_PROBLEMS[problem], rows, facts, details=tuple(details)))
    return findings


_rule = partial(Rule, severity="medium", is_at_user_line=True, docs="export")
#: The problem as torch reports it -> its rule.
_PROBLEMS = {
    "missing_fake_kernel": _rule(
        "export_missing_fake_kernel",
        title="Export: {op} has no fake kernel, so export cannot know the sizes of its outputs",
        action="Register a fake kernel whose outputs have the right sizes, dtypes and strides: "
        '`@torch.library.register_fake("{name}")`.',
    ),
    "mismatched_fake_kernel": _rule(
        "export_mismatched_fake_kernel",
        title="Export: the fake kernel of {op} and the operator give different results: {reason}",
        action='Correct the function under `@torch.library.register_fake("{name}")`; '
        "`torch.library.opcheck(torch.ops.{op}, args)` tests it.",
    ),
    "data_dependent": _rule(
        "export_data_dependent",
        title="Export: {expression}{place} depends on the data; the exported program assumes {result}, as in the "
        "example",
        action="If it always holds, declare it before that line with `torch._check(...)`. If both cases occur, use "
        "`torch.cond(...)` or `torch.where(...)`, or code that is correct in both cases.",
    ),
    "constraint": _rule(
        "export_constraint",
        title="Export: the sizes marked dynamic require {expression}{place}{sizes}",
        action="Declare it in dynamic_shapes (`Dim(name, min=..., max=...)`, one Dim for equal sizes), let torch "
        "choose with `Dim.AUTO`, or make that size static.",
    ),
}
RULES = tuple(_PROBLEMS.values())
