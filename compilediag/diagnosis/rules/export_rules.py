"""What an export could not do soundly, and what to change in the model for it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any

from .. import wording
from ..finding import Finding
from ..rows import Row, first, ids, rows_of

COLUMNS = ("problem", "op", "expression", "result", "reason", "symbols", "user_file", "user_line", "user_code")


def export_findings(tables: Any) -> list[Finding]:
    """One finding an operator, or an expression at a line."""
    groups: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for row in rows_of(tables, "export_problems", COLUMNS):
        what = row["expression"] if row["op"] is None else row["op"]
        groups[(row["problem"], what, row["user_file"], row["user_line"])].append(row)
    return [_finding(key[0], rows) for key, rows in groups.items() if key[0] in _RULES]


def _finding(problem: str, rows: list[Row]) -> Finding:
    title, suggestion = _RULES[problem](rows)
    return Finding(
        rule=f"export_{problem}",
        severity="medium",
        title=title,
        seconds_lost=0.0,
        evidence=ids(rows),
        suggestion=suggestion,
        count=len(rows),
        user_file=first(rows, "user_file"),
        user_line=first(rows, "user_line"),
        user_code=first(rows, "user_code"),
        details=tuple(dict.fromkeys(str(row["result"]) for row in rows if row["result"] is not None)),
    )


def _at(rows: list[Row]) -> str:
    place = wording.position(first(rows, "user_file"), first(rows, "user_line"))
    return f" at {place}" if place else ""


def _operator(rows: list[Row]) -> tuple[str, str]:
    """An operator's name as in a message, and as torch.library takes it: `mylib::foo` of `mylib.foo.default`."""
    op = first(rows, "op") or "an operator"
    namespace, _, rest = op.partition(".")
    return wording.one_line(op), f"{namespace}::{rest.removesuffix('.default')}" if rest else op


def _missing(rows: list[Row]) -> tuple[str, str]:
    op, name = _operator(rows)
    return (
        f"Export: {op} has no fake kernel, so the sizes of its outputs are unknown to the exported program",
        "Register one whose outputs have the right sizes, types and strides: "
        f'`@torch.library.register_fake("{name}")`.',
    )


def _mismatched(rows: list[Row]) -> tuple[str, str]:
    op, name = _operator(rows)
    reason = wording.first_line(first(rows, "reason") or "no reason was given")
    return (
        f"Export: the fake kernel of {op} does not give what the operator gives: {reason}",
        f'Correct the function under `@torch.library.register_fake("{name}")`; '
        f"`torch.library.opcheck(torch.ops.{op}, args)` tests it.",
    )


def _data_dependent(rows: list[Row]) -> tuple[str, str]:
    expression = wording.one_line(first(rows, "expression") or "an expression")
    result = wording.one_line(first(rows, "result") or "a constant")
    return (
        f"Export: only data can tell {expression}{_at(rows)}; the program was fixed to {result}, as in the example",
        "If it is always so, say it before that line with `torch._check(...)`; if both may happen, write it as "
        "`torch.cond(...)` or `torch.where(...)`, or give it an answer that holds for both.",
    )


def _constraint(rows: list[Row]) -> tuple[str, str]:
    expression = wording.one_line(first(rows, "expression") or "a guard")
    symbols = first(rows, "symbols") or {}
    sizes = ", ".join(f"{symbol} is {source}" for symbol, source in symbols.items())
    return (
        f"Export: sizes that were asked to be dynamic need {expression}{_at(rows)}"
        + (f" ({wording.one_line(sizes)})" if sizes else ""),
        "Say so in dynamic_shapes (`Dim(name, min=..., max=...)`, one Dim for sizes that are equal), leave it to torch "
        "with `Dim.AUTO`, or make that size static.",
    )


_RULES: dict[str, Callable[[list[Row]], tuple[str, str]]] = {
    "missing_fake_kernel": _missing,
    "mismatched_fake_kernel": _mismatched,
    "data_dependent": _data_dependent,
    "constraint": _constraint,
}
