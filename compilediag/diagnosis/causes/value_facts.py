"""What torch found out about a guarded value while it compiled: the line that needed its value, conditions on it."""

from __future__ import annotations

import ast
import itertools
import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, fields
from typing import Any

from ...decode.guards.path import Path, format_expression, format_source, name_any_instance
from ...events import Compile, GraphBreak, GuardFailure, Recompile, RefusedCall, SymbolicShape
from ...formatting import format_function, format_line, format_place, parse_resumed
from ..evidence import Evidence, get_place, group_by, kept
from ..source_edits import parse_code
from .static_choices import StaticChoice, StaticChoices

_SYMBOL = re.compile(r"\b(?:s|u|z|zuf)\d+\b")
_EQUAL = re.compile(r"Eq\(s\d+, s\d+\)")
_PARAMETER = re.compile(r"check_tensor\([^,]+, (?:\w+\.)*\w*Parameter,")
#: Functions of torch that decide a condition without a guard where the size is unbacked, and how deep they are called.
_OPTIONAL = frozenset({"_guard_or", "guard_size_oblivious"})
_OPTIONAL_DEPTH = 16
_INTEGER = re.compile(r"-?\d{1,18}")
_NUMBER = re.compile(r"-?\d{1,18}(?:\.\d{1,40})?")
#: Frames that run the function of a thread, and those that begin it.
_RUNS_THREAD = re.compile(r"[\\/](?:threading|concurrent[\\/]futures[\\/]thread)\.py$")
_BEGINS_THREAD = re.compile(r"[\\/]threading\.py$")
#: What is recorded of symbolic shapes that counts here.
_USED = ("created", "specialized", "guarded")
#: Items that a list has at some calls only, of which the first ones are known by name.
_MAX_ITEMS = 64
_OPERATORS: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
#: The backend that replaces that of torch.compile at the first call under the stance aot_eager_then_compile.
_AOT_EAGER = "aot_eager"
_COMPARISONS: dict[type[ast.cmpop], Callable[[int, int], bool]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}
_FUNCTIONS: dict[str, Callable[[int, int], int]] = {"Max": max, "Min": min}
#: Functions of sympy that Python has operators for.
_SYMPY: dict[str, ast.cmpop | ast.operator] = {
    "Eq": ast.Eq(),
    "Ne": ast.NotEq(),
    "Mod": ast.Mod(),
    "PythonMod": ast.Mod(),
    "FloorDiv": ast.FloorDiv(),
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

    `value_need` is the line that needed it as a number, and `was_dynamic` is true if a function that recompiled has an
    entry in which it could vary. `exclusions` are the conditions of new entries that the
    values before did not fulfil, one for each recompile that stays even if the value is dynamic from the start.
    With `has_conditions` an entry would be valid for some values only, even if the value was unbacked; with
    `has_tensor_conditions` for some sizes of its tensor, or of a tensor that changed with it; with
    `has_number_conditions` a condition combines the size with a number. `is_parameter` is true for a size of a
    Parameter, and `is_sometimes_absent` for a value that does not exist at some calls. `torch_version` is (major,
    minor) of the session; (0, 0) if it is not known. `static_sources` is torch's setting of that name.
    `graph_breaks` are those before the code that recompiled, and `thread` is the function of the thread that it ran
    in; None for the main thread. `replaces_aot_eager` is true if the stance aot_eager_then_compile compiled the
    entries that failed, to replace them at the next call. `static_choices` are what the user wrote that keeps numbers
    static; they are read only where a number changed more than once.
    """

    value_need: ShapeNeed | None = None
    was_dynamic: bool = False
    exclusions: tuple[ShapeNeed, ...] = ()
    has_conditions: bool = False
    has_tensor_conditions: bool = False
    has_number_conditions: bool = False
    is_parameter: bool = False
    is_sometimes_absent: bool = False
    torch_version: tuple[int, int] = (0, 0)
    graph_breaks: tuple[GraphBreak, ...] = ()
    thread: str | None = None
    static_sources: str = ""
    replaces_aot_eager: bool = False
    static_choices: tuple[StaticChoice, ...] = ()


def merge_facts(facts: Sequence[ValueFacts]) -> ValueFacts:
    """The facts of several causes that are one: what is true, or known, of one of them."""
    known: dict[str, Any] = {
        field.name: next(filter(None, (getattr(one, field.name) for one in facts)), field.default)
        for field in fields(ValueFacts)
    }
    known["exclusions"] = tuple(need for one in facts for need in one.exclusions)
    known["graph_breaks"] = tuple(row for one in facts for row in one.graph_breaks)
    known["static_choices"] = tuple(dict.fromkeys(choice for one in facts for choice in one.static_choices))
    known["torch_version"] = max((one.torch_version for one in facts), default=(0, 0))
    known["replaces_aot_eager"] = all(one.replaces_aot_eager for one in facts)
    return ValueFacts(**known)


class FactIndex:
    """Finds the facts of values in the rows of a session. One without records of symbolic shapes has few of them."""

    def __init__(self, evidence: Evidence):
        shapes = (row for row in evidence.rows(SymbolicShape) if row.action in _USED and row.compile_key and row.source)
        self._shapes = group_by(shapes, lambda row: row.compile_key)
        self._optional = find_optional_stacks(evidence)
        compiles, failures = evidence.rows(Compile), evidence.rows(GuardFailure)
        self._keys = group_by(compiles, get_place)
        self._failures = group_by(failures, lambda row: (row.compile_key, row.entry_compile_key))
        self.version = evidence.torch_version
        self._static = str(evidence.meta.get("static_sources") or "")
        self._stacks = evidence.stacks
        self._choices = StaticChoices(evidence)
        self._breaks = group_by(evidence.rows(GraphBreak), lambda row: (row.user_file, row.user_line))
        self._parameters = {
            (row.compile_key, row.guard_source) for row in failures if _PARAMETER.match(row.guard or "")
        }
        self._absent = _list_absent([*failures, *evidence.rows(Recompile)])
        first_calls = {get_place(row) for row in evidence.rows(RefusedCall) if row.ran == _AOT_EAGER}
        self._replaced = {c.compile_key for c in compiles if c.backend == _AOT_EAGER and get_place(c) in first_calls}

    def find(self, rows: Sequence[Recompile], source: str, beside: Sequence[str] = ()) -> ValueFacts:
        """The facts of a value that these recompiles are about. `beside` are the values that changed with it."""
        tensors = {Path.of(one).owner for one in (source, *beside)}
        return ValueFacts(
            value_need=self._find_value_need(rows, source),
            was_dynamic=any(
                row.action == "created" and source in _get_sources(row).values()
                for compile in self._list_compiles(rows)
                for row in self._list_shapes(compile)
            ),
            exclusions=self.find_exclusions(rows, source),
            has_conditions=self._has_conditions(rows, lambda names: names <= {source}),
            has_tensor_conditions=self._has_conditions(
                rows, lambda names: {Path.of(one).owner for one in names} <= tensors
            ),
            has_number_conditions=self._has_conditions(
                rows,
                lambda names: source in names and not all(Path.of(one).is_size for one in names),
                also_optional=True,
            ),
            is_parameter=any((row.compile_key, row.guard_source) in self._parameters for row in rows),
            is_sometimes_absent=any(absent.holds(Path.of(one)) for one in (source, *beside) for absent in self._absent),
            torch_version=self.version,
            static_sources=self._static,
            graph_breaks=tuple(found for row in rows for found in self._breaks.get(_get_resumed_place(row), ())),
            thread=next(filter(None, (self.find_thread(row.compile_key) for row in rows)), None),
            replaces_aot_eager=all(row.closest_compile_key in self._replaced for row in rows),
            static_choices=self._choices.find(rows) if len(rows) > 1 else (),
        )

    def find_exclusions(self, rows: Sequence[Recompile], source: str) -> tuple[ShapeNeed, ...]:
        """For each of these recompiles: the condition of the new entry that the earlier values do not fulfil.

        Such a recompile stays, whether the value is dynamic from the start or not. A recompile without one is left out.
        """
        return tuple(need for row in rows if (need := self._find_exclusion(row, source)) is not None)

    def _find_value_need(self, rows: Iterable[Recompile], source: str) -> ShapeNeed | None:
        """The first line that needed this value as a number, in the entries that these recompiles made."""
        for row in (shape for recompile in rows for shape in self._list_shapes(recompile)):
            is_own = {*_get_sources(row).values()} == {source}
            if is_own and row.action == "specialized" and _NUMBER.fullmatch(row.value or ""):
                return ShapeNeed(row.value, None, row.user_file, row.user_line, row.user_code)
        return None

    def _has_conditions(
        self, rows: Iterable[Recompile], are_meant: Callable[[Set[str]], bool], also_optional: bool = False
    ) -> bool:
        """True if an entry of a function that recompiled would be valid for some values only of the sizes and numbers
        that are meant, together, if they were unbacked. With `also_optional`, conditions count that torch skips then.
        """
        return any(
            row.action == "guarded"
            and are_meant(set(_get_sources(row).values()))
            and (also_optional or row.torch_stack not in self._optional)
            and not _is_of_two_tensors(row)
            for compile in self._list_compiles(rows)
            for row in self._list_shapes(compile)
        )

    def _list_compiles(self, rows: Iterable[Recompile]) -> Iterator[Compile]:
        """The compiles of the functions that recompiled."""
        for place in {get_place(row) for row in rows}:
            yield from self._keys.get(place, ())

    def _find_exclusion(self, recompile: Recompile, source: str) -> ShapeNeed | None:
        if not _INTEGER.fullmatch(recompile.expected or ""):
            return None
        before = {**self._list_values_before(recompile), source: int(recompile.expected or "")}
        for row in self._list_shapes(recompile):
            sources = _get_sources(row)
            if row.action != "guarded" or source not in sources.values():
                continue
            values = {symbol: before[name] for symbol, name in sources.items() if name in before}
            if evaluate_condition(row.expression or "", values) is False:
                condition = format_condition(row.expression or "", sources)
                return ShapeNeed(None, condition, row.user_file, row.user_line, row.user_code)
        return None

    def _list_values_before(self, recompile: Recompile) -> dict[str, int]:
        """The sizes and numbers that the closest entry was made for, of those that are symbols in the new one."""
        created = [row for row in self._list_shapes(recompile) if row.action == "created"]
        values = {name: row.value for row in created for name in _get_sources(row).values()}
        for failure in self._failures.get((recompile.compile_key, recompile.closest_compile_key), ()):
            values[name_any_instance(failure.guard_source or "")] = failure.expected
        return {name: int(value) for name, value in values.items() if value and _INTEGER.fullmatch(value)}

    def _list_shapes(self, row: Recompile | Compile) -> Sequence[SymbolicShape]:
        """The records of symbolic shapes of a compile."""
        return self._shapes.get(row.compile_key, ())

    def find_thread(self, compile_key: str | None) -> str | None:
        """`serve (server.py:31)`: the function that the thread of a compile runs; None for the main thread, or if it is
        not known.

        Modes and settings of torch belong to one thread.
        """
        path = [*self._stacks.walk(self._stacks.find(compile_key))]
        if not path or not _BEGINS_THREAD.search(path[-1].file or ""):
            return None
        first = next((row for row in reversed(path) if not _RUNS_THREAD.search(row.file or "")), None)
        return format_function(first.function, first.file, first.line) if first else None


@kept
def index_facts(evidence: Evidence) -> FactIndex:
    """The facts of a session's values."""
    return FactIndex(evidence)


@kept
def find_optional_stacks(evidence: Evidence) -> frozenset[str | None]:
    """The stacks of torch's conditions that it does not need where the value is unbacked, such as those that choose a
    faster algorithm.
    """
    stacks = {row.torch_stack for row in evidence.rows(SymbolicShape) if row.action == "guarded"}
    frames = {stack: itertools.islice(evidence.stacks.walk(stack), _OPTIONAL_DEPTH) for stack in stacks}
    return frozenset(stack for stack, path in frames.items() if any(one.function in _OPTIONAL for one in path))


def _list_absent(rows: Iterable[GuardFailure | Recompile]) -> set[Path]:
    """The values that do not exist at some calls: None, without the attribute, an item of a shorter list, a dict's."""
    found = set[Path]()
    for row in rows:
        path, pair = Path.of(row.guard_source or ""), (row.expected or "", row.actual or "")
        if {"None", "NoneType"} & {*pair} or row.guard_kind in ("hasattr", "dict_keys"):
            found.add(path)
        elif row.guard_kind == "length" and all(map(_INTEGER.fullmatch, pair)):
            first, last = sorted(map(int, pair))
            found.update(path.subject.then("item", at) for at in range(first, min(last, first + _MAX_ITEMS)))
    return found - {Path("")}


def _get_resumed_place(row: Recompile) -> tuple[str | None, int | None]:
    """File and line of the graph break before the code that recompiled; (None, None) if there was none."""
    resumed = parse_resumed(row.function)
    return (row.file, resumed[1]) if resumed else (None, None)


def _get_sources(row: SymbolicShape) -> dict[str, str]:
    """The values that a record is about, as users write them, by their symbols."""
    named = row.symbols or {row.symbol or "": row.source or ""}
    return {symbol: name_any_instance(format_source(name)) for symbol, name in named.items()}


def _is_of_two_tensors(row: SymbolicShape) -> bool:
    """True if the sizes of two tensors have to be equal: what changes both of them keeps that."""
    tensors = {Path.of(source).owner for source in _get_sources(row).values()}
    return len(tensors) == 2 and _EQUAL.fullmatch((row.expression or "").strip()) is not None


def evaluate_condition(expression: str, values: Mapping[str, int]) -> bool | None:
    """Whether a condition of torch holds for these values of its symbols; None if it has parts that are not understood,
    or symbols of unknown value.
    """
    try:
        found = _evaluate(_parse_condition(expression), values)
    except (SyntaxError, ValueError, KeyError, ZeroDivisionError, MemoryError, RecursionError):
        return None
    return bool(found)


class _PlainOperators(ast.NodeTransformer):
    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        sign = _SYMPY.get(node.func.id) if isinstance(node.func, ast.Name) and len(node.args) == 2 else None
        if isinstance(sign, ast.cmpop):
            return ast.Compare(node.args[0], [sign], [node.args[1]])
        return node if sign is None else ast.BinOp(node.args[0], sign, node.args[1])


def _parse_condition(expression: str) -> ast.expr:
    """A condition of torch with Python's operators in place of sympy's functions: `Ne(Mod(s0, 8), 0)` is `s0 % 8 != 0`.
    SyntaxError and others for what is none.
    """
    condition: ast.expr = _PlainOperators().visit(ast.parse(expression.strip(), mode="eval").body)
    return condition


def format_condition(expression: str, sources: Mapping[str, str]) -> str:
    """A condition of torch as the user would write it: `x.shape[0] % 8 != 0`. `sources` has the values by symbol."""
    try:
        text = ast.unparse(_parse_condition(expression))
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        text = expression
    return _SYMBOL.sub(lambda found: format_expression(sources.get(found[0], found[0])), text)


def _evaluate(node: ast.expr, values: Mapping[str, int]) -> int:
    """KeyError or ValueError for what is not understood."""
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return node.value
    if isinstance(node, ast.Name):
        return values[node.id]
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_evaluate(node.operand, values)
    if isinstance(node, ast.BinOp):
        return _OPERATORS[type(node.op)](_evaluate(node.left, values), _evaluate(node.right, values))
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        left, right = _evaluate(node.left, values), _evaluate(node.comparators[0], values)
        return _COMPARISONS[type(node.ops[0])](left, right)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and len(node.args) == 2:
        return _FUNCTIONS[node.func.id](*(_evaluate(argument, values) for argument in node.args))
    raise ValueError(f"not understood: {ast.dump(node)[:80]}")


# What a line of the user's code does with a value


#: Functions of Python that need the number itself.
_NEED_NUMBER = frozenset({"range", "list", "tuple", "enumerate", "zip", "str", "repr", "format"})
_SHAPE_CALLS = frozenset({"zeros", "ones", "empty", "full", "view", "reshape", "expand", "repeat", "arange", "rand"})


def find_uses(code: str | None, name: str) -> frozenset[str]:
    """How a line uses `name`: any of "operand", "update", "index", "range", "argument", "condition", "other".

    "update" is `name += 1`. "operand" is arithmetic whose result is not itself an option of a call: there a tensor can
    take the number's place. Empty if the line does not contain it, or cannot be parsed.
    """
    text = (code or "").strip()
    tree, wanted = parse_code(text) or parse_code(f"{text}\n    pass"), parse_code(name)
    if tree is None or wanted is None or not isinstance(wanted.body[0], ast.Expr):
        return frozenset()
    target = ast.dump(wanted.body[0].value)
    parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    found = (node for node in ast.walk(tree) if isinstance(node, ast.expr) and _dump(node) == target)
    return frozenset(_classify(node, parents) for node in found if not _is_assigned(node, parents[node]))


def _is_assigned(node: ast.expr, parent: ast.AST) -> bool:
    """True for the target of an assignment, which does not read the value."""
    return isinstance(parent, ast.Assign) and any(node is target for target in parent.targets)


def _dump(node: ast.expr) -> str:
    # `self.step += 1` stores what it reads; its context is no difference here.
    return ast.dump(node).replace("ctx=Store()", "ctx=Load()")


def _classify(node: ast.AST, parents: dict[ast.AST, ast.AST]) -> str:
    parent = parents.get(node)
    if isinstance(parent, ast.BinOp | ast.UnaryOp):
        outer = _classify(parent, parents)
        return "operand" if outer == "other" else outer
    if isinstance(parent, ast.AugAssign) and parent.target is node:
        return "update"
    if isinstance(parent, ast.Slice) or (isinstance(parent, ast.Subscript) and parent.slice is node):
        return "index"
    if isinstance(parent, ast.Compare | ast.If | ast.IfExp | ast.While | ast.BoolOp):
        return "condition"
    if isinstance(parent, ast.keyword):
        return "argument"
    if isinstance(parent, ast.Call):
        return _classify_argument(node, parent)
    return "other"


def _classify_argument(node: ast.AST, call: ast.Call) -> str:
    function = call.func.id if isinstance(call.func, ast.Name) else getattr(call.func, "attr", "")
    if isinstance(call.func, ast.Name) and function in _NEED_NUMBER:
        return "range"
    if function == "as_tensor" and call.args[:1] == [node]:
        return "operand"
    # `torch.relu(x * k)` takes the tensor that the arithmetic gives; `dropout(x, 2 * k)` takes a number.
    is_first = bool(call.args) and call.args[0] is node and isinstance(node, ast.BinOp)
    return "other" if is_first and function not in _SHAPE_CALLS else "argument"
