"""What torch found out about a size or number while it compiled: the line that needed its value, conditions on it."""

from __future__ import annotations

import ast
import operator
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from ...decode.guards.source_names import format_source
from ...events import GraphBreak, GuardFailure, Recompile, Rows, StackFrame, SymbolicShape
from ...formatting import format_expression, format_line, format_place, is_resumed
from ..evidence import group_by
from .source_paths import normalize_source
from .thread_names import ThreadIndex

_SYMBOL = re.compile(r"\b(?:s|u|z|zuf)\d+\b")
_PARAMETER = re.compile(r"check_tensor\([^,]+, (?:\w+\.)*\w*Parameter,")
#: Functions of torch that decide a condition without a guard where the size is unbacked, and how deep they are called.
_OPTIONAL = frozenset({"_guard_or", "guard_size_oblivious"})
_OPTIONAL_DEPTH = 16
_RESUMED_AT = re.compile(r"_at_(\d+)$")
_INTEGER = re.compile(r"-?\d{1,18}")
_OPERATORS: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_COMPARISONS: dict[type[ast.cmpop], Callable[[int, int], bool]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}
_FUNCTIONS: dict[str, Callable[[int, int], int]] = {
    "Eq": operator.eq,
    "Ne": operator.ne,
    "Mod": operator.mod,
    "PythonMod": operator.mod,
    "FloorDiv": operator.floordiv,
    "Max": max,
    "Min": min,
}


@dataclass(frozen=True)
class ShapeNeed:
    """What an entry needs of a size or number, and the user's line that needs it.

    `value` is the only value that it can have; None if the entry needs `condition`, in the value's own name.
    """

    value: str | None
    condition: str | None
    file: str | None
    line: int | None
    code: str | None

    @property
    def place_text(self) -> str:
        """`model.py:31: for i in range(n)`; "" if the line is not known."""
        where, code = format_place(self.file, self.line), format_line(self.code or "", 80)
        return f"{where}: {code}" if where and code else where


@dataclass(frozen=True)
class ValueFacts:
    """What is known of a guarded value beside its guards.

    `value_need` is the line that needed it as a number. `exclusions` are the conditions of new entries that the value
    before did not fulfil, one for each recompile that stays even if the value is dynamic from the start. With
    `has_conditions` an entry would be valid for some values only, even if the value was unbacked. `is_parameter` is
    true for a size of a Parameter, and `is_sometimes_none` for a value that does not exist at some calls.
    `torch_version` is (major, minor) of the session; (0, 0) if it is not known. `graph_breaks` are those before the
    code that recompiled, and `thread` is the function of the thread that it ran in; None for the main thread.
    """

    value_need: ShapeNeed | None = None
    exclusions: tuple[ShapeNeed, ...] = ()
    has_conditions: bool = False
    is_parameter: bool = False
    is_sometimes_none: bool = False
    torch_version: tuple[int, int] = (0, 0)
    graph_breaks: tuple[GraphBreak, ...] = ()
    thread: str | None = None


def merge_facts(facts: Sequence[ValueFacts]) -> ValueFacts:
    """The facts of several causes that are one."""
    return ValueFacts(
        value_need=next((one.value_need for one in facts if one.value_need), None),
        exclusions=tuple(need for one in facts for need in one.exclusions),
        has_conditions=any(one.has_conditions for one in facts),
        is_parameter=any(one.is_parameter for one in facts),
        is_sometimes_none=any(one.is_sometimes_none for one in facts),
        torch_version=max((one.torch_version for one in facts), default=(0, 0)),
        graph_breaks=tuple(row for one in facts for row in one.graph_breaks),
        thread=next((one.thread for one in facts if one.thread), None),
    )


class FactIndex:
    """Finds the facts of a value in the rows of a session."""

    def __init__(self, data: Rows):
        self._shapes = ShapeIndex(data)
        self._version = _read_version(getattr(data, "meta", {}).get("torch_version"))
        self._threads = ThreadIndex(data)
        self._breaks = group_by(data.rows(GraphBreak), lambda row: (row.user_file, row.user_line))
        failures = data.rows(GuardFailure)
        rows: list[GuardFailure | Recompile] = [*failures, *data.rows(Recompile)]
        self._parameters = {
            (row.compile_key, row.guard_source) for row in failures if _PARAMETER.match(row.guard or "")
        }
        self._absent = {
            row.guard_source for row in rows if row.guard_source and {row.expected, row.actual} & {"None", "NoneType"}
        }

    def find(self, rows: Sequence[Recompile], source: str) -> ValueFacts:
        """The facts of a value that these recompiles are about."""
        return ValueFacts(
            value_need=self._shapes.find_value_need(rows, source),
            exclusions=self._shapes.find_exclusions(rows, source),
            has_conditions=self._shapes.has_conditions(rows, source),
            is_parameter=any((row.compile_key, row.guard_source) in self._parameters for row in rows),
            is_sometimes_none=any(_is_part_of(source, absent) for absent in self._absent),
            torch_version=self._version,
            graph_breaks=tuple(found for row in rows for found in self._breaks.get(_get_resumed_place(row), ())),
            thread=next(filter(None, (self._threads.find(row.compile_key) for row in rows)), None),
        )


def _read_version(text: object) -> tuple[int, int]:
    found = re.match(r"(\d+)\.(\d+)", str(text))
    return (int(found[1]), int(found[2])) if found else (0, 0)


def _get_resumed_place(row: Recompile) -> tuple[str | None, int | None]:
    """File and line of the graph break before the code that recompiled; (None, None) if there was none."""
    found = _RESUMED_AT.search(row.function or "") if is_resumed(row.function) else None
    return (row.file, int(found[1])) if found else (None, None)


def _is_part_of(source: str, whole: str) -> bool:
    """True if `source` is `whole`, or something in it: a size, an item, an attribute."""
    return source == whole or (source.startswith(whole) and source[len(whole)] in ".[")


class OptionalConditions:
    """Conditions that torch does not need where the value is unbacked, such as those that choose a faster algorithm."""

    def __init__(self, data: Rows):
        self._frames = {row.stack: row for row in data.rows(StackFrame)}
        self._known: dict[str | None, bool] = {}

    def __contains__(self, row: object) -> bool:
        if not isinstance(row, SymbolicShape):
            return False
        if row.torch_stack not in self._known:
            self._known[row.torch_stack] = any(name in _OPTIONAL for name in self._list_functions(row.torch_stack))
        return self._known[row.torch_stack]

    def _list_functions(self, stack: str | None) -> Iterator[str | None]:
        """The functions of a stack, the innermost first."""
        for _ in range(_OPTIONAL_DEPTH):
            frame = self._frames.get(stack)
            if frame is None:
                return
            yield frame.function
            stack = frame.caller


class ShapeIndex:
    """The records of symbolic shapes of each compile. Sessions without these records have no evidence."""

    def __init__(self, data: Rows):
        self._is_optional = OptionalConditions(data)
        self._by_compile: dict[str, list[SymbolicShape]] = defaultdict(list)
        for row in data.rows(SymbolicShape):
            if row.action in ("specialized", "guarded") and row.compile_key is not None and row.source:
                self._by_compile[row.compile_key].append(row)

    def find_value_need(self, rows: Iterable[Recompile], source: str) -> ShapeNeed | None:
        """The first line that needed this value as a number, in the entries that these recompiles made."""
        for row in self._list_own(rows, source):
            if row.action == "specialized" and _INTEGER.fullmatch(row.value or ""):
                return ShapeNeed(row.value, None, row.user_file, row.user_line, row.user_code)
        return None

    def find_exclusions(self, rows: Sequence[Recompile], source: str) -> tuple[ShapeNeed, ...]:
        """For each of these recompiles: the condition of the new entry that the earlier value does not fulfil.

        Such a recompile stays, whether the value is dynamic from the start or not. A recompile without one is left out.
        """
        found = (self._find_exclusion(row, source) for row in rows)
        return tuple(need for need in found if need is not None)

    def has_conditions(self, rows: Iterable[Recompile], source: str) -> bool:
        """True if an entry that these recompiles made would be valid for some values only if the value was unbacked."""
        own = self._list_own(rows, source)
        return any(row.action == "guarded" and row not in self._is_optional for row in own)

    def _find_exclusion(self, recompile: Recompile, source: str) -> ShapeNeed | None:
        if not _INTEGER.fullmatch(recompile.expected or ""):
            return None
        for row in self._list_own([recompile], source):
            symbols = set(_SYMBOL.findall(row.expression or ""))
            if row.action != "guarded" or len(symbols) != 1:
                continue
            symbol = symbols.pop()
            if evaluate_condition(row.expression or "", symbol, int(recompile.expected or "")) is False:
                condition = format_condition(row.expression or "", symbol, source)
                return ShapeNeed(None, condition, row.user_file, row.user_line, row.user_code)
        return None

    def _list_own(self, rows: Iterable[Recompile], source: str) -> list[SymbolicShape]:
        """The records about this value alone, of the entries that these recompiles made."""
        keys = [row.compile_key for row in rows if row.compile_key is not None]
        return [row for key in keys for row in self._by_compile.get(key, ()) if _get_source(row) == source]


def _get_source(row: SymbolicShape) -> str | None:
    """The value that a record is about, as users write it; None if it is about several."""
    text = row.source or ""
    if ", " in text and " = " in text:
        return None
    return normalize_source(format_source(text.rpartition(" = ")[2]))


def evaluate_condition(expression: str, symbol: str, value: int) -> bool | None:
    """Whether a condition of torch on one symbol holds for a value; None if it has parts that are not understood."""
    try:
        found = _evaluate(ast.parse(expression.strip(), mode="eval").body, symbol, value)
    except (SyntaxError, ValueError, KeyError, ZeroDivisionError, MemoryError, RecursionError):
        return None
    return bool(found)


class _PlainOperators(ast.NodeTransformer):
    """Writes sympy's functions as Python's operators: `Ne(Mod(s0, 8), 0)` -> `s0 % 8 != 0`."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if not isinstance(node.func, ast.Name) or len(node.args) != 2:
            return node
        left, right = node.args
        if node.func.id in ("Eq", "Ne"):
            return ast.Compare(left, [ast.Eq() if node.func.id == "Eq" else ast.NotEq()], [right])
        if node.func.id in ("Mod", "PythonMod"):
            return ast.BinOp(left, ast.Mod(), right)
        return ast.BinOp(left, ast.FloorDiv(), right) if node.func.id == "FloorDiv" else node


def format_condition(expression: str, symbol: str, source: str) -> str:
    """A condition of torch on one symbol, as the user would write it: `x.size(0) % 8 != 0`."""
    try:
        text = ast.unparse(_PlainOperators().visit(ast.parse(expression.strip(), mode="eval")))
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        text = expression
    return re.sub(rf"\b{symbol}\b", lambda _: format_expression(source), text)


def _evaluate(node: ast.expr, symbol: str, value: int) -> int:
    """KeyError or ValueError for what is not understood."""
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return node.value
    if isinstance(node, ast.Name) and node.id == symbol:
        return value
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_evaluate(node.operand, symbol, value)
    if isinstance(node, ast.BinOp):
        return _OPERATORS[type(node.op)](_evaluate(node.left, symbol, value), _evaluate(node.right, symbol, value))
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        left, right = _evaluate(node.left, symbol, value), _evaluate(node.comparators[0], symbol, value)
        return _COMPARISONS[type(node.ops[0])](left, right)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and len(node.args) == 2:
        return _FUNCTIONS[node.func.id](*(_evaluate(argument, symbol, value) for argument in node.args))
    raise ValueError(f"not understood: {ast.dump(node)[:80]}")
