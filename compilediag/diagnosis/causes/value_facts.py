"""What is known of a guarded value beside its guards: what torch found out while it compiled (the line that needed its
value, conditions on it), what a line of the user's code does with it, and what the user wrote that keeps it static.
"""

from __future__ import annotations

import ast
import functools
import itertools
import operator
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, NamedTuple

from ...decode.call_stacks import is_torch_file
from ...decode.guards.path import Path, format_expression, format_source, name_any_instance
from ...events import Compile, GraphBreak, GuardFailure, Recompile, RefusedCall, StackFrame, SymbolicShape
from ...formatting import find_cell_number, format_line, format_place, parse_resumed
from ...system.source_files import SourceReader, read_cell_code, split_lines
from ..change import CallSite, Edit
from ..evidence import Evidence, get_place, group_by, kept
from ..program_file import CompileCall, ProgramFile, find_compile_calls
from ..source_edits import STATIC_OPTION, STATIC_SETTINGS, EditError, is_static, parse_call, parse_code, undo_static
from .call_sites import find_compiled_call, get_name, read_own_code

_SYMBOL = re.compile(r"\b(?:s|u|z|zuf)\d+\b")
_EQUAL = re.compile(r"Eq\(s\d+, s\d+\)")
#: torch's guard on a tensor that is a Parameter.
PARAMETER = re.compile(r"check_tensor\([^,]+, (?:\w+\.)*\w*Parameter,")
#: Functions of torch that decide a condition without a guard where the size is unbacked, and how deep they are called.
_OPTIONAL = frozenset({"_guard_or", "guard_size_oblivious"})
_OPTIONAL_DEPTH = 16
INTEGER = re.compile(r"-?\d{1,18}")
_NUMBER = re.compile(r"-?\d{1,18}(?:\.\d{1,40})?")
#: The first version of torch in which what is set in one thread is not in force in another.
THREAD_SETTINGS_SINCE = (2, 12)
#: Frames that run the function of a thread, and those that begin it.
_RUNS_THREAD = re.compile(r"[\\/](?:threading|concurrent[\\/]futures[\\/]thread)\.py$")
_BEGINS_THREAD = re.compile(r"[\\/]threading\.py$")
#: What is recorded of symbolic shapes that counts here.
_USED = ("created", "specialized", "guarded")
#: Guards on numbers.
_NUMBERS = ("tensor_size", "value")
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
class StaticChoice:
    """What the user wrote that keeps sizes and numbers static. `option` is `dynamic`, or the name of a setting.

    `code` is the text: `dynamic=False`. `edit` undoes it; None where only a person can, for the value is a variable's.
    """

    option: str
    code: str
    file: str
    line: int
    edit: Edit | None = None

    @property
    def place(self) -> str:
        return format_place(self.file, self.line)


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
    in; None for the main thread. `threads` are those in which the function was compiled; empty if settings are the same
    in all of them. `replaces_aot_eager` is true if the stance aot_eager_then_compile compiled the
    entries that failed, to replace them at the next call. `static_choices` are what the user wrote that keeps numbers
    static; they are read only where a number changed more than once. `has_failed` is true if torch could not compile
    one of its recompiles, in which a number or size varies. `spared` are the recompiles of its functions, by event id,
    that an earlier entry serves if this value varies in it.
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
    thread: CallSite | None = None
    threads: tuple[CallSite | None, ...] = ()
    static_sources: str = ""
    replaces_aot_eager: bool = False
    static_choices: tuple[StaticChoice, ...] = ()
    has_failed: bool = False
    spared: frozenset[int | None] = frozenset()


def merge_facts(facts: Sequence[ValueFacts]) -> ValueFacts:
    """The facts of several causes that are one: what is true, or known, of one of them."""
    known: dict[str, Any] = {
        field.name: next(filter(None, (getattr(one, field.name) for one in facts)), field.default)
        for field in fields(ValueFacts)
    }
    known["exclusions"] = tuple(need for one in facts for need in one.exclusions)
    known["threads"] = tuple(dict.fromkeys(thread for one in facts for thread in one.threads))
    known["graph_breaks"] = tuple(row for one in facts for row in one.graph_breaks)
    known["static_choices"] = tuple(dict.fromkeys(choice for one in facts for choice in one.static_choices))
    known["spared"] = frozenset(number for one in facts for number in one.spared)
    known["torch_version"] = max((one.torch_version for one in facts), default=(0, 0))
    known["replaces_aot_eager"] = all(one.replaces_aot_eager for one in facts)
    return ValueFacts(**known)


class Threads:
    """Finds the threads of a session's compiles."""

    def __init__(self, evidence: Evidence):
        self._stacks, self._own, self._version = evidence.stacks, read_own_code(evidence), evidence.torch_version
        #: By the stack of a compile.
        self._found: dict[str | None, CallSite | None] = {}

    def list_all(self, rows: Iterable[Recompile | Compile | GraphBreak]) -> tuple[CallSite | None, ...]:
        """The threads of compiles, each of which has its own settings; none before torch 2.12."""
        return tuple(dict.fromkeys(map(self.find, rows))) if self._version >= THREAD_SETTINGS_SINCE else ()

    def find(self, row: Recompile | Compile | GraphBreak) -> CallSite | None:
        """The function that the thread of a compile runs; None for the main thread, or if it is not known.

        Modes and settings of torch belong to one thread. The function is the user's, outside of compiled code, at the
        line that runs; of a thread without one, it is what the thread runs, without code.
        """
        stack = self._stacks.find(row.compile_key)
        if stack not in self._found:
            self._found[stack] = self._read([*self._stacks.walk(stack)][::-1])
        return self._found[stack]

    def _read(self, path: Sequence[StackFrame]) -> CallSite | None:
        if not path or not _BEGINS_THREAD.search(path[0].file or ""):
            return None
        inside = [one for one in path[: find_compiled_call(path)] if not _RUNS_THREAD.search(one.file or "")]
        functions = (one for one in inside if one.code and (one.function or "").isidentifier())
        own = next((one for one in functions if self._own.is_own(one.file, one.function, one.code)), None)
        first = own or next((one for one in path if not _RUNS_THREAD.search(one.file or "")), path[0])
        return CallSite(first.file or "", first.line or 0, first.function, own.code if own is not None else None)


@kept
def find_threads(evidence: Evidence) -> Threads:
    """The threads in which a session compiled."""
    return Threads(evidence)


class FactIndex:
    """Finds the facts of values in the rows of a session. One without records of symbolic shapes has few of them."""

    def __init__(self, evidence: Evidence):
        #: By their compile, each with the values that it is about, as users write them, by their symbols.
        self._shapes: dict[str, list[tuple[SymbolicShape, Mapping[str, str]]]] = defaultdict(list)
        for shape in evidence.rows(SymbolicShape):
            if shape.action in _USED and shape.compile_key and shape.source:
                named = shape.symbols or {shape.symbol or "": shape.source}
                sources = {symbol: name_any_instance(format_source(name)) for symbol, name in named.items()}
                self._shapes[shape.compile_key].append((shape, sources))
        self._optional = find_optional_stacks(evidence)
        compiles, failures = evidence.rows(Compile), evidence.rows(GuardFailure)
        self._keys = group_by(compiles, get_place)
        self._failures = group_by(failures, lambda row: (row.compile_key, row.entry_compile_key))
        self._entries = group_by(failures, lambda row: row.compile_key)
        self._recompiles = group_by(evidence.rows(Recompile), get_place)
        self._is_full = evidence.meta.get("detail") == "full"
        #: By the event id of a recompile.
        self._earlier: dict[int | None, frozenset[str]] = {}
        self.version = evidence.torch_version
        self._static = str(evidence.meta.get("static_sources") or "")
        self._threads = find_threads(evidence)
        self._choices = StaticChoices(evidence)
        self._breaks = group_by(evidence.rows(GraphBreak), lambda row: (row.user_file, row.user_line))
        self._parameters = {(row.compile_key, row.guard_source) for row in failures if PARAMETER.match(row.guard or "")}
        self._failed = {row.compile_key for row in compiles if row.outcome == "failed" and row.limit is None}
        self._absent = _list_absent([*failures, *evidence.rows(Recompile)])
        first_calls = {get_place(row) for row in evidence.rows(RefusedCall) if row.ran == _AOT_EAGER}
        self._replaced = {c.compile_key for c in compiles if c.backend == _AOT_EAGER and get_place(c) in first_calls}

    def find(self, rows: Sequence[Recompile], source: str, beside: Sequence[str] = ()) -> ValueFacts:
        """The facts of a value that these recompiles are about. `beside` are the values that changed with it."""
        tensors = {Path.of(one).owner for one in (source, *beside)}
        return ValueFacts(
            value_need=next(
                (
                    ShapeNeed(row.value, None, row.user_file, row.user_line, row.user_code)
                    for recompile in rows
                    for row, sources in self._list_shapes(recompile)
                    if row.action == "specialized" and {*sources.values()} == {source}
                    if _NUMBER.fullmatch(row.value or "")
                ),
                None,
            ),
            was_dynamic=any(
                row.action == "created" and source in sources.values()
                for compile in self._list_compiles(rows)
                for row, sources in self._list_shapes(compile)
            ),
            exclusions=tuple(need for row in rows if (need := self.find_exclusion(row, source)) is not None),
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
            graph_breaks=tuple(
                found
                for row in rows
                if (resumed := parse_resumed(row.function)) is not None
                for found in self._breaks.get((row.file, resumed[1]), ())
            ),
            thread=next(filter(None, map(self._threads.find, rows)), None),
            threads=self._threads.list_all(self._list_compiles(rows)),
            replaces_aot_eager=all(row.closest_compile_key in self._replaced for row in rows),
            static_choices=self._choices.find(rows) if len(rows) > 1 else (),
            has_failed=any(map(self.has_failed, rows)),
            spared=frozenset(
                row.event_id
                for place in {get_place(row) for row in rows}
                for row in self._recompiles.get(place, ())
                if not {source, *beside}.isdisjoint(self.find_earlier_entry(row))
            ),
        )

    def find_earlier_entry(self, row: Recompile) -> frozenset[str]:
        """The numbers that have to vary in an entry before the closest one, which then serves a recompile: it has all
        conditions of the new entry, if its own values fulfil them. Empty if there is no such entry.
        """
        if row.event_id not in self._earlier:
            keys = dict.fromkeys(one.entry_compile_key for one in self._entries.get(row.compile_key, ()))
            found = (self._find_numbers(row, key) for key in keys if key != row.closest_compile_key)
            self._earlier[row.event_id] = next(filter(None, found), frozenset()) if self._is_full else frozenset()
        return self._earlier[row.event_id]

    def _find_numbers(self, row: Recompile, entry: str | None) -> frozenset[str]:
        """The numbers that an entry has to have as variables to serve a recompile; empty if that is not enough."""
        shapes, failed = self._list_shapes(row), self._failures[row.compile_key, entry]
        if any(one.guard_kind not in _NUMBERS or not _NUMBER.fullmatch(one.expected or "") for one in failed):
            return frozenset()
        # What did not fail has the same value in both.
        known = {name: one.value for one, own in shapes if one.action == "created" for name in own.values()}
        known |= {name_any_instance(one.guard_source or ""): one.expected for one in failed}
        values = {name: int(value) for name, value in known.items() if value and INTEGER.fullmatch(value)}
        needs = [(one.expression or "", own) for one, own in shapes if one.action == "guarded"]
        if not needs or any(one.action == "specialized" for one, _ in shapes):
            return frozenset()
        for expression, own in needs:
            symbols = {symbol: values[name] for symbol, name in own.items() if name in values}
            if not is_met(expression, symbols):
                return frozenset()
        return frozenset(name_any_instance(one.guard_source or "") for one in failed)

    def has_failed(self, row: Recompile) -> bool:
        """True if torch could not compile what it recompiled."""
        return row.compile_key in self._failed

    def _has_conditions(
        self, rows: Iterable[Recompile], are_meant: Callable[[Set[str]], bool], also_optional: bool = False
    ) -> bool:
        """True if an entry of a function that recompiled would be valid for some values only of the sizes and numbers
        that are meant, together, if they were unbacked. With `also_optional`, conditions count that torch skips then.
        """
        for row, sources in (shape for compile in self._list_compiles(rows) for shape in self._list_shapes(compile)):
            is_needed = also_optional or row.torch_stack not in self._optional
            if row.action == "guarded" and is_needed and are_meant({*sources.values()}):
                tensors = {Path.of(source).owner for source in sources.values()}
                # That the sizes of two tensors are equal stays true if what changes them changes both.
                if len(tensors) != 2 or not _EQUAL.fullmatch((row.expression or "").strip()):
                    return True
        return False

    def _list_compiles(self, rows: Iterable[Recompile]) -> Iterator[Compile]:
        """The compiles of the functions that recompiled."""
        for place in {get_place(row) for row in rows}:
            yield from self._keys.get(place, ())

    def find_exclusion(self, recompile: Recompile, source: str) -> ShapeNeed | None:
        """The condition of the new entry that the earlier values do not fulfil. Such a recompile stays, whether the
        value is dynamic from the start or not.
        """
        if not INTEGER.fullmatch(recompile.expected or ""):
            return None
        # The sizes and numbers that the closest entry was made for, of those that are symbols in the new one.
        shapes = self._list_shapes(recompile)
        known = {name: row.value for row, own in shapes if row.action == "created" for name in own.values()}
        for failure in self._failures.get((recompile.compile_key, recompile.closest_compile_key), ()):
            known[name_any_instance(failure.guard_source or "")] = failure.expected
        before = {name: int(value) for name, value in known.items() if value and INTEGER.fullmatch(value)}
        before[source] = int(recompile.expected or "")
        for row, sources in shapes:
            if row.action != "guarded" or source not in sources.values():
                continue
            values = {symbol: before[name] for symbol, name in sources.items() if name in before}
            condition = find_unmet_condition(row.expression or "", values, sources)
            if condition is not None:
                return ShapeNeed(None, condition, row.user_file, row.user_line, row.user_code)
        return None

    def _list_shapes(self, row: Recompile | Compile) -> Sequence[tuple[SymbolicShape, Mapping[str, str]]]:
        """The records of symbolic shapes of a compile, each with the values that it is about by their symbols."""
        return self._shapes.get(row.compile_key or "", ())


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
        elif row.guard_kind == "length" and (lengths := read_integers(row)) is not None:
            first, last = sorted(lengths)
            found.update(path.subject.then("item", at) for at in range(first, min(last, first + _MAX_ITEMS)))
    return found - {Path("")}


def read_integers(row: GuardFailure | Recompile) -> tuple[int, int] | None:
    """The integer that an entry needs and the one that came; None for anything else."""
    pair = row.expected or "", row.actual or ""
    return (int(pair[0]), int(pair[1])) if all(map(INTEGER.fullmatch, pair)) else None


def is_met(expression: str, values: Mapping[str, int]) -> bool:
    """True if these values of its symbols are known to fulfil a condition of torch."""
    try:
        return bool(_evaluate(_PlainOperators().visit(ast.parse(expression.strip(), mode="eval").body), values))
    except (SyntaxError, ValueError, KeyError, ZeroDivisionError, MemoryError, RecursionError):
        return False


def find_unmet_condition(expression: str, values: Mapping[str, int], sources: Mapping[str, str]) -> str | None:
    """A condition of torch that these values of its symbols do not fulfil, as the user would write it:
    `x.shape[0] % 8 != 0`. None if they do, or if it has parts that are not understood, or symbols of unknown value.
    `sources` has the values by symbol.
    """
    try:
        condition = _PlainOperators().visit(ast.parse(expression.strip(), mode="eval").body)
        if _evaluate(condition, values):
            return None
        text = ast.unparse(condition)
    except (SyntaxError, ValueError, KeyError, ZeroDivisionError, MemoryError, RecursionError):
        return None
    return _SYMBOL.sub(lambda found: format_expression(sources.get(found[0], found[0])), text)


class _PlainOperators(ast.NodeTransformer):
    """Python's operators in place of sympy's functions: `Ne(Mod(s0, 8), 0)` is `s0 % 8 != 0`."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        sign = _SYMPY.get(node.func.id) if isinstance(node.func, ast.Name) and len(node.args) == 2 else None
        if isinstance(sign, ast.cmpop):
            return ast.Compare(node.args[0], [sign], [node.args[1]])
        return node if sign is None else ast.BinOp(node.args[0], sign, node.args[1])


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
    # The target of an assignment does not read the value.
    assigned = [target for node in ast.walk(tree) if isinstance(node, ast.Assign) for target in node.targets]
    nodes = (node for node in ast.walk(tree) if isinstance(node, ast.expr))
    # `self.step += 1` stores what it reads; its context is no difference here.
    found = (node for node in nodes if ast.dump(node).replace("ctx=Store()", "ctx=Load()") == target)
    return frozenset(_classify(node, parents) for node in found if node not in assigned)


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
    if not isinstance(parent, ast.Call):
        return "other"
    function = get_name(parent.func)
    if isinstance(parent.func, ast.Name) and function in _NEED_NUMBER:
        return "range"
    if function == "as_tensor" and parent.args[:1] == [node]:
        return "operand"
    # `torch.relu(x * k)` takes the tensor that the arithmetic gives; `dropout(x, 2 * k)` takes a number.
    is_first = parent.args[:1] == [node] and isinstance(node, ast.BinOp)
    return "other" if is_first and function not in _SHAPE_CALLS else "argument"


# What the user wrote that keeps sizes and numbers static: `dynamic=False` where a function is compiled, or a setting.
#
# A recording has neither, so the program's own files are parsed. A file is read only if `SourceReader` reads it, and if
# each of its lines in the stack of the compile is the recorded one. Nothing in it is evaluated.


class _Written(NamedTuple):
    """One place where a file compiles something, by the names that it has, or assigns a setting.

    `function` is what a decorator compiles: its name, its first line, and its last one.
    """

    names: frozenset[str] = frozenset()
    function: tuple[str, int, int] | None = None
    choice: StaticChoice | None = None
    is_setting: bool = False


class StaticChoices:
    """Finds what keeps the numbers of a session's functions static."""

    def __init__(self, evidence: Evidence):
        self._stacks = evidence.stacks
        self._code = read_own_code(evidence)
        self._is_own = evidence.is_ours
        self._texts: dict[str, str | None] = {}
        self._found: dict[str | None, tuple[StaticChoice, ...]] = {}

    @cached_property
    def _reader(self) -> SourceReader:
        return SourceReader(self._is_own)

    def find(self, rows: Iterable[Recompile]) -> tuple[StaticChoice, ...]:
        """What is written where the functions of recompiles are compiled, and the settings of their files; nothing if
        nothing is found for one of them.
        """
        found = [self._find(self._stacks.find(row.compile_key)) for row in rows]
        return tuple(dict.fromkeys(itertools.chain.from_iterable(found))) if all(found) else ()

    def _find(self, stack: str | None) -> tuple[StaticChoice, ...]:
        if stack in self._found:
            return self._found[stack]
        path = [*self._stacks.walk(stack)][::-1]
        compiled = find_compiled_call(path)
        at = len(path) - 1 if compiled is None else compiled + 1
        function = next((row for row in path[at:] if not is_torch_file(row.file or "")), next(iter(path[at:]), None))
        caller = next((row for row in reversed(path[:at]) if not is_torch_file(row.file or "")), None)
        files = [row.file for row in path if row.file and self._code.is_own(row.file, row.function, row.code)]
        # The cells that ran before may compile what a cell calls.
        last = max((find_cell_number(file) or 0 for file in files), default=0)
        cells = [f"Cell In[{number}]" for number in range(last, 0, -1)] if self._is_own else []
        written = [one for file in dict.fromkeys([*files, *cells]) for one in self._read(file, path)]
        calls, settings = ([one for one in written if one.is_setting is is_meant] for is_meant in (False, True))
        found = [] if function is None else [*_match(calls, function, caller), *settings]
        self._found[stack] = tuple(one.choice for one in found if one.choice is not None)
        return self._found[stack]

    def _read(self, file: str, path: Iterable[StackFrame]) -> tuple[_Written, ...]:
        number = find_cell_number(file)
        if file not in self._texts:
            is_cell = number is not None and self._is_own
            self._texts[file] = read_cell_code(number or 0) if is_cell else self._reader.find(file)
        text, known = self._texts[file], {row.line: row.code.strip() for row in path if row.file == file and row.code}
        lines = {at: line.strip() for at, line in enumerate(split_lines(text or ""), 1)} if known else {}
        is_recorded = bool(known) or number is not None
        if text is None or not is_recorded or any(lines.get(line or 0) != code for line, code in known.items()):
            return ()
        return _list_written(file, text)


def _match(calls: Sequence[_Written], function: StackFrame, caller: StackFrame | None) -> Sequence[_Written]:
    """The places that compile a function: its decorator, those that name it, those whose result is called. If there are
    none, the only place of all that is no decorator.
    """
    name, line = function.function or "", function.line or 0
    decorators = [(one, one.function) for one in calls if one.function is not None]
    decorated = [one for one, (of, first, last) in decorators if of == name and first <= line <= last]
    others = [one for one in calls if one.function is None]
    called = parse_call(caller.call or "") if caller is not None else None
    callee = get_name(called.func) if called is not None else None
    named = [one for one in others if name in one.names] or [one for one in others if callee in one.names]
    found = decorated or named or (others if len(others) == 1 else [])
    last = max((find_cell_number(one.choice.file) or 0 for one in found if one.choice), default=0)
    # A cell that is executed again compiles again.
    return [one for one in found if one.choice is None or (find_cell_number(one.choice.file) or 0) == last]


@functools.lru_cache(32)
def _list_written(name: str, text: str) -> tuple[_Written, ...]:
    """What is written in one file; nothing if it is no Python."""
    found: list[_Written] = []
    try:
        file = ProgramFile(name, text)
        for call in find_compile_calls(file):
            node, function = call.function, None
            names = [get_name(call.target) if call.target is not None else None, (call.name or "").rpartition(".")[2]]
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                function = (node.name, node.decorator_list[0].lineno, node.end_lineno or node.lineno)
            found.append(_Written(frozenset(filter(None, names)), function, _read_choice(call)))
        return (*found, *(_Written(choice=choice, is_setting=True) for choice in _list_settings(file)))
    except (EditError, RecursionError):
        return ()


def _read_choice(call: CompileCall) -> StaticChoice | None:
    """`dynamic=False` of a call with its edit; `dynamic=IS_DYNAMIC` and `**options` without one."""
    for keyword in call.options:
        line, text = keyword.value.lineno, ast.unparse(keyword)
        if is_static(keyword):
            source, at = call.file.get_text(call.node), "@" if call.function is not None else ""
            code = f"{at}{source if source.isprintable() else ast.unparse(call.node)}"
            return StaticChoice(STATIC_OPTION, text, call.file.name, line, _undo(call.file, line, code))
        if keyword.arg in (STATIC_OPTION, None) and not isinstance(keyword.value, ast.Constant):
            return StaticChoice(STATIC_OPTION, format_line(text, 80), call.file.name, line)
    return None


def _undo(file: ProgramFile, line: int, old: str) -> Edit | None:
    new = undo_static(old)
    return None if new is None else Edit(file.name, line, "replace", old, new, code=file.get_line(line).strip())


def _list_settings(file: ProgramFile) -> Iterator[StaticChoice]:
    """`torch._dynamo.config.automatic_dynamic_shapes = False` with its edit; other ways to set it without one."""
    for node in ast.walk(file.tree):
        if isinstance(node, ast.Assign) and isinstance(target := node.targets[0], ast.Attribute):
            name, value = target.attr, node.value
        elif isinstance(node, ast.keyword) and node.arg is not None:
            name, value = node.arg, node.value
        else:
            continue
        if name in STATIC_SETTINGS and isinstance(value, ast.Constant) and value.value is not STATIC_SETTINGS[name]:
            text, line = ast.unparse(node), value.lineno
            edit = _undo(file, line, text) if isinstance(node, ast.Assign) else None
            yield StaticChoice(name, text, file.name, line, edit)
