"""Moves that change what the code does, and not only how it is compiled.

Each move is a syntactic change that keeps what is computed, as far as one function shows it; or it compiles another
region: the step of a loop in place of the loop, and autocast at the callers. Runs decide the rest. A function that is
no longer compiled is still observed: its calls are counted, and what they return is compared.
"""

from __future__ import annotations

import ast
import builtins
import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from ..diagnosis.program_file import CompileCall, ProgramFile
from ..diagnosis.rules.graph_breaks import list_breaks
from ..diagnosis.source_edits import Splice, write_path
from ..events import Compile
from ..formatting import format_amount, format_names, format_place
from ..trials.fresh_process import OBSERVE
from .program import Bundle, Move, Observation, Program, ProgramChange, can_be_dynamic, change_file

Function = ast.FunctionDef | ast.AsyncFunctionDef
#: A graph with so many calls may have a loop unrolled.
_LARGE_GRAPH = 500
#: How often a parameter is followed to a caller.
_MOST_CALLERS = 3
#: What is inside of these can run several times.
_REPEATED = (ast.For, ast.While, ast.AsyncFor, ast.FunctionDef, ast.AsyncFunctionDef)
#: Names of these do not exist before the statement that they are in.
_WITH_OWN_NAMES = (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
Part = tuple[str, Splice]
#: A statement that makes an object, its file, and how it is called there.
Made = tuple[ProgramFile, ast.stmt, str]


class CloneLayout:
    """`.contiguous()` keeps the strides of dimensions of size 1; a clone has those of its shape."""

    def propose(self, seen: Observation) -> Iterator[Bundle]:
        if not any(cause.kind == "tensor_stride" for cause in seen.open_causes):
            return
        found = []
        for file, node in seen.program.list_method_calls("contiguous"):
            if isinstance(node.func, ast.Attribute) and not (node.args or node.keywords):
                new = f"{file.get_text(node.func.value)}.clone(memory_format=torch.contiguous_format)"
                title = f"a clone instead of .contiguous(), {format_place(file.name, node.lineno)}"
                found.append(change_file("code", title, file, file.replace(node, new)))
        if found:
            yield tuple(found)


class EagerFirst:
    """One call that is not compiled, before what it fills is guarded: lazy attributes, caches, hooks of a library.

    Only for what a first call changes by itself. A stance that runs first calls eagerly lowers the number of compiles
    of any program that calls a function twice, and the compile only comes later.
    """

    def propose(self, seen: Observation) -> Iterator[Bundle]:
        if not any(cause.is_set_once and not can_be_dynamic(cause) for cause in seen.open_causes):
            return
        for compiled in seen.program.compile_calls:
            file, name, target = compiled.file, compiled.name, ast.unparse(compiled.target) if compiled.target else ""
            if name is None or target in ("", name) or write_path(target) is None:
                continue
            # `model(batch)` before the first `compiled(batch)`, if that is a statement that runs once.
            calls = [node for node in ast.walk(file.tree) if isinstance(node, ast.Call)]
            uses = [node for node in calls if ast.unparse(node.func) == name and (node.args or node.keywords)]
            first = min(uses, key=lambda node: (node.lineno, node.col_offset), default=None)
            statement = file.find_statement_of(first) if first is not None else None
            if first is None or statement is None or _is_inside(file, file.parents.get(statement), _REPEATED):
                continue
            arguments = file.get_text(first)[len(file.get_text(first.func)) :]
            splice = file.insert_before(statement, ["with torch.no_grad():", f"    {target}{arguments}"])
            if splice is not None:
                yield (change_file("code", f"one call of {target} that is not compiled", file, splice),)
        file = seen.program.main
        splice = file.insert_below_imports('torch.compiler.set_stance("eager_then_compile")')
        yield (change_file("code", "the first call of each function runs eagerly", file, splice),)


def _is_inside(file: ProgramFile, node: ast.AST | None, kinds: tuple[type[ast.AST], ...]) -> bool:
    """True if a node, or what it is a part of, is of one of these kinds."""
    while node is not None and not isinstance(node, kinds):
        node = file.parents.get(node)
    return node is not None


# Statements of a compiled function


class MoveOut:
    """A statement that only keeps something goes from the compiled function to its callers:
    `self.sizes.append(x.shape[0])`, `self.calls += 1`.

    It reads only arguments, and nothing else in the function reads what it changes.
    """

    def propose(self, seen: Observation) -> Iterator[Bundle]:
        names = {name for cause in seen.open_causes for name in cause.path.names} - {"self"}
        lines = {(row.user_file, row.user_line) for row in list_breaks(seen.evidence)}
        for file in seen.program.files.values():
            for function in _list_functions(file):
                for statement in function.body:
                    kept = _find_kept(statement)
                    if kept is None or not (kept in names or (file.name, statement.lineno) in lines):
                        continue
                    change = _move_out(seen.program, file, function, statement, kept)
                    if change is not None:
                        yield (change,)


def _find_kept(statement: ast.stmt) -> str | None:
    """The attribute or global that a statement changes and does nothing else: `sizes` of `self.sizes.append(n)`."""
    if isinstance(statement, ast.AugAssign):
        target: ast.expr = statement.target
        return target.attr if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) else None
    call = statement.value if isinstance(statement, ast.Expr) else None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
        return None
    owner = call.func.value
    if isinstance(owner, ast.Attribute) and isinstance(owner.value, ast.Name):
        return owner.attr
    return owner.id if isinstance(owner, ast.Name) else None


def _move_out(
    program: Program, file: ProgramFile, function: Function, statement: ast.stmt, kept: str
) -> ProgramChange | None:
    removed = file.remove(statement)
    names = list_parameters(function)
    used = {node.id for node in ast.walk(statement) if isinstance(node, ast.Name)} - set(dir(builtins))
    others = [node for one in function.body if one is not statement for node in ast.walk(one)]
    is_read = any(kept in (getattr(node, "attr", None), getattr(node, "id", None)) for node in others)
    before = (node for one in function.body[: function.body.index(statement)] for node in ast.walk(one))
    assigned = {node.id for node in before if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    if removed is None or is_read or used & assigned or len(function.body) < 2:
        return None
    parts = [(file.name, removed)]
    for other, call, owner in _list_callers(program, file, function):
        own = {} if owner is None or not names else {names[0]: owner}
        values = {**own, **_find_arguments(function, call, bool(own))}
        text = _fill(statement, used if other is not file else used & {*names}, values)
        place = other.find_statement_of(call)
        inserted = other.insert_before(place, [text]) if text is not None and place is not None else None
        if inserted is None or _is_inside(other, call, _WITH_OWN_NAMES):
            return None
        parts.append((other.name, inserted))
    if len(parts) == 1:
        return None
    title = f"`{ast.unparse(statement)}` before {format_amount(len(parts) - 1, 'call')} instead of inside"
    return ProgramChange("code", title, tuple(parts), is_whole=True)


def _fill(statement: ast.stmt, names: set[str], values: Mapping[str, ast.expr]) -> str | None:
    """A statement with the values of a call for its names; None if one is missing, or has to be evaluated for that."""
    if not all(name in values and write_path(ast.unparse(values[name])) for name in names):
        return None

    class Fill(ast.NodeTransformer):
        def visit_Name(self, node: ast.Name) -> ast.expr:
            return values.get(node.id, node)

    return ast.unparse(Fill().visit(ast.parse(ast.unparse(statement))))


def list_parameters(function: Function | ast.Lambda) -> list[str]:
    """The names of a function's parameters, without those for the rest."""
    arguments = function.args
    return [one.arg for one in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]


def _find_arguments(function: Function, call: ast.Call, is_method: bool) -> dict[str, ast.expr]:
    """The values that a call of a function has for its parameters."""
    return {
        **dict(zip(list_parameters(function)[is_method:], call.args, strict=False)),
        **{one.arg: one.value for one in call.keywords if one.arg is not None},
    }


def _list_callers(
    program: Program, file: ProgramFile, function: Function
) -> Iterator[tuple[ProgramFile, ast.Call, ast.expr | None]]:
    """The calls of a function that is compiled, with the object whose method it is."""
    is_method = isinstance(file.parents.get(function), ast.ClassDef)
    for compiled in _find_compile_calls(program, file, function):
        if compiled.node not in function.decorator_list:
            found = program.list_calls(compiled.result)
        else:
            found = program.list_method_calls(function.name) if is_method else program.list_calls(function.name)
        for other, call in found:
            owner = call.func if function.name == "forward" else getattr(call.func, "value", None)
            yield other, call, owner if is_method else None


def _find_compile_calls(program: Program, file: ProgramFile, function: Function) -> Iterator[CompileCall]:
    """Where the program compiles a function, or the module whose `forward` it is."""
    is_forward = isinstance(file.parents.get(function), ast.ClassDef) and function.name == "forward"
    for compiled in program.compile_calls:
        target = ast.unparse(compiled.target) if compiled.target else ""
        is_target = compiled.target is not None and (is_forward or target.rpartition(".")[2] == function.name)
        if is_target or compiled.node in function.decorator_list:
            yield compiled


def _list_functions(file: ProgramFile) -> Iterator[Function]:
    return (node for node in ast.walk(file.tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


class WhereForBranch:
    """`torch.where` in place of a branch on the values of a tensor that only chooses between two tensors."""

    def propose(self, seen: Observation) -> Iterator[Bundle]:
        lines = {(row.user_file, row.user_line) for row in list_breaks(seen.evidence)}
        for file, node in seen.program.walk(ast.If):
            own = range(node.test.lineno, (node.test.end_lineno or node.test.lineno) + 1)
            change = _choose(file, node) if any((file.name, line) in lines for line in own) else None
            if change is not None:
                yield (change,)


def _choose(file: ProgramFile, branch: ast.If) -> ProgramChange | None:
    """`y = torch.where(...)` for `if test: y = a`, with or without `else: y = b`; the same for `return`, and for
    `continue` before a single assignment.
    """
    body = getattr(file.parents[branch], "body", [])
    after = body[body.index(branch) + 1 :] if branch in body else []
    test = _write_test(branch.test)
    if test is None or len(branch.body) != 1 or len(branch.orelse) > 1:
        return None
    first, second = branch.body[0], next(iter(branch.orelse), None)
    last: ast.stmt = branch
    if isinstance(first, ast.Continue) and second is None and len(after) == 1:
        last = after[0]
        other = _read_result(last)
        one = other and other._replace(value=other.before)
    else:
        if isinstance(first, ast.Return) and second is None:
            last = second = next(iter(after), branch)
        one = _read_result(first)
        other = _read_result(second) if second is not None else one and one._replace(value=one.before)
    if one is None or other is None or one.start != other.start or not (one.value and other.value):
        return None
    text = f"{one.start} torch.where({test}, {one.value}, {other.value})"
    splice = file.replace_statements(branch, last, text)
    return ProgramChange("code", f"`{text}`", ((file.name, splice),), is_whole=True)


class _Result(NamedTuple):
    """What a statement makes of `value`: `y =` or `return`; and what has the value before it."""

    start: str
    before: str
    value: str


def _read_result(node: ast.stmt) -> _Result | None:
    """That of `y = a`, `y += a` or `return a`."""
    if isinstance(node, ast.Return) and node.value is not None:
        return _Result("return", "", ast.unparse(node.value))
    if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
        name = node.targets[0].id
        return _Result(f"{name} =", name, ast.unparse(node.value))
    if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
        name = node.target.id
        return _Result(f"{name} =", name, ast.unparse(ast.BinOp(ast.Name(name, ast.Load()), node.op, node.value)))
    return None


def _write_test(test: ast.expr) -> str | None:
    """A condition as a tensor: without `.item()` and `bool()`; None for one of several parts."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        inner = _write_test(test.operand)
        return None if inner is None else f"~({inner})"
    if isinstance(test, ast.BoolOp):
        return None

    class Strip(ast.NodeTransformer):
        def visit_Call(self, node: ast.Call) -> ast.AST:
            self.generic_visit(node)
            is_item = isinstance(node.func, ast.Attribute) and node.func.attr == "item" and not node.args
            is_number = isinstance(node.func, ast.Name) and node.func.id in ("bool", "int", "float")
            if is_item:
                return node.func.value  # type: ignore[attr-defined]
            return node.args[0] if is_number and len(node.args) == 1 else node

    return ast.unparse(Strip().visit(ast.parse(ast.unparse(test), mode="eval").body))


# What a module computes in forward, and could have computed in __init__


class ComputeInInit:
    """A number that only depends on attributes that `__init__` sets, as a buffer that `__init__` computes."""

    def propose(self, seen: Observation) -> Iterator[Bundle]:
        names = dict.fromkeys(
            name for cause in seen.open_causes if cause.path.is_module_attribute and (name := cause.path.own_name)
        )
        for name in names:
            for file, owner, init in list_classes(seen.program):
                bundle = tuple(_compute_in_init(file, owner, init, name))
                if bundle:
                    yield bundle


def list_classes(program: Program) -> Iterator[tuple[ProgramFile, ast.ClassDef, ast.FunctionDef]]:
    """The classes of a program with their `__init__`."""
    for file, node in program.walk(ast.ClassDef):
        methods = (one for one in node.body if isinstance(one, ast.FunctionDef) and one.name == "__init__")
        yield from ((file, node, init) for init in methods)


def _compute_in_init(
    file: ProgramFile, owner: ast.ClassDef, init: ast.FunctionDef, name: str
) -> Iterator[ProgramChange]:
    assigned = {attribute: one for one in init.body for attribute in _list_assigned(one)}
    changed = {
        attribute
        for one in owner.body
        if one is not init
        for node in ast.walk(one)
        for attribute in _list_assigned(node)
    }
    if name not in assigned or name in changed:
        return
    local = {node.id for node in ast.walk(owner) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    local |= {node.arg for node in ast.walk(owner) if isinstance(node, ast.arg)} - {"self"}
    taken = {node.attr for node in ast.walk(owner) if isinstance(node, ast.Attribute)}
    for method in owner.body:
        for node in _list_largest(method, local) if isinstance(method, ast.FunctionDef) and method is not init else ():
            attributes = {one.attr for one in ast.walk(node) if _is_own_attribute(one)}  # type: ignore[attr-defined]
            if name not in attributes or not attributes <= assigned.keys() - changed:
                continue
            parent = file.parents[node]
            target = parent.targets[0] if isinstance(parent, ast.Assign) and parent.value is node else None
            buffer = target.id if isinstance(target, ast.Name) else f"{name}_value"
            if buffer in taken:
                continue
            last = max((assigned[one] for one in attributes), key=lambda one: one.lineno)
            text = f'self.register_buffer("{buffer}", torch.tensor({file.get_text(node)}), persistent=False)'
            inserted = file.insert_after(last, [text])
            if inserted is not None:
                parts = ((file.name, inserted), (file.name, file.replace(node, f"self.{buffer}")))
                title = f"`{ast.unparse(node)}` as a buffer, {format_place(file.name, node.lineno)}"
                yield ProgramChange("tensor", title, parts, is_whole=True)


def _list_largest(node: ast.AST, local: set[str]) -> Iterator[ast.expr]:
    """The largest expressions of arithmetic and functions of Python's that read no local name."""
    for child in ast.iter_child_nodes(node):
        is_number = isinstance(child, ast.BinOp | ast.UnaryOp | ast.Call) and all(
            isinstance(one, ast.BinOp | ast.UnaryOp | ast.Constant | ast.operator | ast.unaryop | ast.expr_context)
            or (isinstance(one, ast.Name) and one.id not in local)
            or _is_own_attribute(one)
            or _is_function(one)
            for one in ast.walk(child)
        )
        if is_number and any(map(_is_own_attribute, ast.walk(child))):
            yield child  # type: ignore[misc]
        else:
            yield from _list_largest(child, local)


def _is_own_attribute(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self"


def _is_function(node: ast.AST) -> bool:
    """True for a call of a function of `math` or of Python's for numbers, and for its name."""
    if isinstance(node, ast.Call):
        named = node.func
        return _is_function(named) or (isinstance(named, ast.Name) and named.id in _NUMBER_FUNCTIONS)
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "math"


_NUMBER_FUNCTIONS = ("abs", "float", "int", "max", "min", "pow", "round")


def _list_assigned(node: ast.AST) -> Iterator[str]:
    """The attributes of `self` that a statement assigns."""
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AugAssign) else []
    for target in targets:
        for one in target.elts if isinstance(target, ast.Tuple) else [target]:
            if _is_own_attribute(one):
                yield one.attr  # type: ignore[attr-defined]


class FillInInit:
    """A cache that `forward` fills when it is empty or too small: filled in `__init__`, for more than was needed."""

    def propose(self, seen: Observation) -> Iterator[Bundle]:
        causes = (seen.unchanged or seen).causes  # What is dynamic by now is no cause any more.
        sizes = [int(value) for cause in causes for value in cause.values if value.isdecimal()]
        names = {name for cause in causes for name in cause.path.names}
        largest = max(sizes, default=0)
        for file, owner, init in list_classes(seen.program):
            unset = [one for one in init.body if isinstance(one, ast.Assign) and ast.unparse(one.value) == "None"]
            empty = {name: one for one in unset for name in _list_assigned(one) if name in names}
            for call in _list_fills(owner, init, set(empty)) if empty and largest else ():
                for more in (0, 2):  # The largest size that recompiled need not be the largest one.
                    text = f"{ast.unparse(call.func)}({1 << largest.bit_length() + more})"
                    inserted = file.insert_after(init.body[-1], [text])
                    if inserted is not None:
                        title = f"`{text}` in `__init__`, {format_place(file.name, init.lineno)}"
                        yield (change_file("code", title, file, inserted),)


def _list_fills(owner: ast.ClassDef, init: ast.FunctionDef, names: set[str]) -> Iterator[ast.Call]:
    """Calls such as `self.fill(length)`, below a condition on one of the attributes, of a method that sets it."""
    filling = {
        method.name
        for method in owner.body
        if isinstance(method, ast.FunctionDef) and method is not init
        for node in ast.walk(method)
        if names & set(_list_assigned(node))
    }
    for branch in (node for node in ast.walk(owner) if isinstance(node, ast.If)):
        if not any(_is_own_attribute(node) and node.attr in names for node in ast.walk(branch.test)):  # type: ignore
            continue
        for statement in branch.body:
            call = statement.value if isinstance(statement, ast.Expr) else None
            is_fill = isinstance(call, ast.Call) and _is_own_attribute(call.func) and call.func.attr in filling  # type: ignore
            if is_fill and len(call.args) == 1 and not call.keywords:  # type: ignore[union-attr]
                yield call  # type: ignore[misc]


class ContiguousResult:
    """`.contiguous()` on an item that is returned, and comes back as an argument with other strides."""

    def propose(self, seen: Observation) -> Iterator[Bundle]:
        items = dict.fromkeys(
            step.value
            for cause in seen.open_causes
            if cause.kind == "tensor_stride" or cause.path.tensor_property == "stride"
            for step in [*cause.path.subject.steps][-1:]
            if step.kind == "item" and type(step.value) is int
        )
        for file, node in seen.program.walk(ast.Return):
            tuples = [one for one in ast.walk(node) if isinstance(one, ast.Tuple)]
            for item in items:
                for one in reversed(tuples):  # The innermost first.
                    if item < len(one.elts) and isinstance(name := one.elts[item], ast.Name):
                        new = f"{name.id}.contiguous()"
                        title = f"{new}, {format_place(file.name, name.lineno)}"
                        yield (change_file("code", title, file, file.replace(name, new)),)


# Moves that compile another region


class CompileStep:
    """What a loop calls in each step, compiled in place of the function whose graph has the loop unrolled."""

    def propose(self, seen: Observation) -> Iterator[Bundle]:
        for file, function in _list_compiled(seen, _LARGE_GRAPH):
            for callee in _list_steps(function):
                yield from _compile_inside(seen, file, function, [callee])


class AutocastOutside:
    """Autocast at the callers of a compiled function, or around a call that is compiled, in place of inside: no cache
    keeps a graph that enters it, and a context that is an argument is guarded, as is autocast at the callers.
    """

    def propose(self, seen: Observation) -> Iterator[Bundle]:
        names = {name for cause in seen.open_causes for name in cause.path.names}
        for file, function in _list_compiled(seen, 1) if not list_breaks(seen.evidence) else ():
            for region in function.body:
                if not isinstance(region, ast.With) or len(region.items) != 1 or region.items[0].optional_vars:
                    continue
                context = region.items[0].context_expr
                is_autocast = isinstance(context, ast.Call) and ast.unparse(context.func).endswith("autocast")
                guarded = "autocast" if is_autocast else getattr(context, "id", None)
                if not (guarded in names or (is_autocast and seen.is_uncached)):
                    continue
                change = _move_to_callers(seen.program, file, function, region, context)
                if change is not None:
                    yield (change,)
                callees = [*_list_callees(region.body)]
                if callees:
                    yield from _compile_inside(seen, file, function, callees)


class CompileInside:
    """The modules and methods that a function calls, compiled in its place, where torch gave up: the trunk of
    `self.heads[task](self.trunk(x))`. At its limit, torch runs the rest eagerly anyway.
    """

    def propose(self, seen: Observation) -> Iterator[Bundle]:
        rows = (seen.unchanged or seen).evidence.rows(Compile)
        limited = {(row.file, row.line) for row in rows if row.limit is not None}
        names = {name for cause in seen.open_causes for name in (cause.path.root, *cause.path.names)} - {"self"}
        for file, function in _list_compiled(seen, 1) if seen.open_causes else ():
            if not any(seen.program.find(name) is file and line == _get_first_line(function) for name, line in limited):
                continue
            calls = [node for node in ast.walk(function) if isinstance(node, ast.Call) and _is_own_attribute(node.func)]
            callees = {ast.unparse(node.func): node.func for node in calls if not names & _list_passed(node)}
            if callees:
                yield from _compile_inside(seen, file, function, [*callees.values()])


def _list_passed(call: ast.Call) -> set[str]:
    """The names and attributes that are arguments of a call as they are."""
    values = (*call.args, *(keyword.value for keyword in call.keywords))
    return {name for one in values if (name := getattr(one, "id", getattr(one, "attr", None))) is not None}


class GradModeInThread:
    """The gradient mode of the first compile at the beginning of a thread: each thread has its own."""

    def propose(self, seen: Observation) -> Iterator[Bundle]:
        for cause in seen.open_causes:
            thread, mode = cause.facts.thread, next(iter(cause.values), "")
            file = seen.program.find(thread.file) if thread is not None and thread.code else None
            function = file.find_function(thread.line) if file is not None and thread is not None else None
            if file is None or function is None or cause.source != "grad_mode" or mode not in ("True", "False"):
                continue
            line = f"torch.set_grad_enabled({mode})"
            splice = file.begin_function(function, [line])
            if splice is not None:
                title = f"{line} in `{function.name}`, {format_place(file.name, function.lineno)}"
                yield (change_file("code", title, file, splice),)


class CacheAutocast:
    """Graphs that enter autocast, allowed in the cache: what they do depends on the arguments of that alone."""

    def propose(self, seen: Observation) -> Iterator[Bundle]:
        if seen.is_uncached:
            names = [f"torch.amp.autocast_mode._{name}_autocast" for name in ("enter", "exit")]
            line = f"torch._inductor.config.unsafe_marked_cacheable_functions = {dict.fromkeys(names, '1')}"
            file = seen.program.main
            yield (change_file("settings", line, file, file.insert_below_imports(line)),)


def _list_compiled(seen: Observation, fewest: int) -> Iterator[tuple[ProgramFile, Function]]:
    """The functions of the unchanged program of which a graph has at least so many calls."""
    rows = (seen.unchanged or seen).evidence.rows(Compile)
    for path, line in dict.fromkeys((row.file, row.line) for row in rows if (row.graph_ops or 0) >= fewest):
        file = seen.program.find(path)
        for function in _list_functions(file) if file is not None else ():
            if line == _get_first_line(function):
                yield file, function  # type: ignore[misc]


def _get_first_line(function: Function) -> int:
    """The line that its code object has."""
    return min(node.lineno for node in (function, *function.decorator_list))


def _list_steps(function: Function) -> Iterator[ast.expr]:
    """What the loops of a function call in each step, if it is the same in all."""
    for loop in ast.walk(function):
        if isinstance(loop, ast.For | ast.While):
            names = (node for node in ast.walk(loop) if isinstance(node, ast.Name))
            changed = {name.id for name in names if isinstance(name.ctx, ast.Store)}
            yield from (callee for callee in _list_callees(loop.body) if ast.unparse(callee) not in changed)


def _list_callees(body: Sequence[ast.stmt]) -> Iterator[ast.expr]:
    """What statements call that are nothing but a call of a name or of an attribute of `self`:
    `hidden = self.cell(x[t], hidden)`.
    """
    for statement in body:
        value = getattr(statement, "value", None)
        if isinstance(value, ast.Call) and (isinstance(value.func, ast.Name) or _is_own_attribute(value.func)):
            yield value.func


# What a function calls, compiled in its place


def _compile_inside(
    seen: Observation, file: ProgramFile, function: Function, callees: Sequence[ast.expr]
) -> Iterator[Bundle]:
    """With the options that the function has, and with `dynamic=True`."""
    program, has_sizes = seen.program, any(map(can_be_dynamic, seen.open_causes))
    names = format_names([f"`{ast.unparse(callee)}`" for callee in callees])
    for compiled in _find_compile_calls(program, file, function):
        own = [compiled.file.get_text(one) for one in compiled.options]
        has_choice = any(one.arg == "dynamic" for one in compiled.options)
        for more in ([], ["dynamic=True"]) if has_sizes and not has_choice else ([],):
            options = ", ".join([*own, *more])
            inside = [_compile(program, file, function, compiled, callee, options) for callee in callees]
            without = _uncompile(compiled) if all(inside) else None
            if without is not None:
                title = " ".join([f"{names} compiled in place of `{function.name}`", *(f"with {one}" for one in more)])
                patch, run = ((part, *itertools.chain.from_iterable(inside)) for part in without)
                yield (ProgramChange("code", title, patch, (), is_whole=True, runs=run, uncompiled=function.name),)


def _uncompile(compiled: CompileCall) -> tuple[Part, Part] | None:
    """What does not compile a function, as the patch and the copy that runs have it; None where it is no statement."""
    file, node, target = compiled.file, compiled.node, compiled.target
    statement = file.find_statement_of(node)
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
        start, end = file.starts[node.lineno - 1], file.starts[node.end_lineno or node.lineno]
        return (file.name, Splice(start, end, "", False)), (file.name, file.replace(node, OBSERVE))
    if target is None or statement is None or getattr(statement, "value", None) is not node:
        return None
    text = file.get_text(target)
    run = file.replace(node, f"{OBSERVE}({text})")
    is_kept = isinstance(statement, ast.Assign) and compiled.name not in (None, ast.unparse(target))
    patch = file.replace(node, text) if is_kept else file.remove(statement)
    return None if patch is None else ((file.name, patch), (file.name, run))


def _compile(
    program: Program, file: ProgramFile, function: Function, compiled: CompileCall, callee: ast.expr, options: str
) -> list[Part]:
    """What compiles a callee where it is made or defined; nothing if that is not known."""
    if isinstance(callee, ast.Attribute):
        # An attribute of `self`: below what compiles the model, or in `__init__` if the method itself is compiled.
        body = getattr(file.parents[function], "body", ())
        methods = [node for node in body if getattr(node, "name", None) == "__init__"]
        made = [
            (file, one, f"self.{callee.attr}")
            for method in methods
            for one in method.body
            if callee.attr in _list_assigned(one)
        ]
        statement, path = compiled.file.find_statement_of(compiled.node), write_path(compiled.result)
        if made and compiled.node not in function.decorator_list:
            made = [(compiled.file, statement, f"{path}.{callee.attr}")] if statement is not None and path else []
        defined = [(file, node) for node in body if getattr(node, "name", None) == callee.attr]
    else:
        name = ast.unparse(callee)
        made = _find_made(program, file, function, name, _MOST_CALLERS)
        every = ((other, node) for other in program.files.values() for node in other.tree.body)
        defined = [one for one in every if isinstance(one[1], Function) and one[1].name == name]
    found = [(other, other.insert_after(statement, [f"{path}.compile({options})"])) for other, statement, path in made]
    if not made:
        decorator = f"@torch.compile({options})" if options else "@torch.compile"
        found = [(other, other.insert_before(node, [decorator])) for other, node in defined]
    return [(other.name, splice) for other, splice in found if splice is not None]


def _find_made(program: Program, file: ProgramFile, function: Function | None, name: str, levels: int) -> list[Made]:
    """The statement that makes what a function has by this name; in the callers, if it is a parameter."""
    if function is not None and name in list_parameters(function):
        found = {}
        for other, call in program.list_calls(function.name) if levels else ():
            value = _find_arguments(function, call, False).get(name)
            caller = other.find_function(call.lineno)
            made = _find_made(program, other, caller, value.id, levels - 1) if isinstance(value, ast.Name) else []
            if not made:
                return []
            found.update({(one[0].name, one[1].lineno): one for one in made})
        return [*found.values()]
    nodes = file.tree.body if function is None else ast.walk(function)
    assigned = [node for node in nodes if isinstance(node, ast.Assign) and name in map(ast.unparse, node.targets)]
    if function is not None and not assigned:
        return _find_made(program, file, file.find_function(function.lineno), name, levels)
    return [(file, node, name) for node in assigned if isinstance(node.value, ast.Call) and len(assigned) == 1]


# A region of a function around its calls


def _move_to_callers(
    program: Program, file: ProgramFile, function: Function, region: ast.With, context: ast.expr
) -> ProgramChange | None:
    """`with context: loss = f(x)` at each call, if the region is all that the function does."""
    parameters = [*function.args.posonlyargs, *function.args.args]
    used = {node.id for node in ast.walk(context) if isinstance(node, ast.Name)} & {*list_parameters(function)}
    passed = next((one for one in parameters if isinstance(context, ast.Name) and one.arg == context.id), None)
    others = [node for node in function.body if node is not region]
    is_whole = all(
        _is_name(node.value)
        if isinstance(node, ast.Return)
        else isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        for node in others
    )
    start, end = file.find_span(region.body[0])[0], file.find_span(region.body[-1])[1]
    has_comment = "#" in file.text[file.find_span(context)[1] : start]
    if not is_whole or has_comment or (used and passed is None):
        return None
    more = region.body[0].col_offset - region.col_offset
    text = file.text[start:end].replace("\n" + " " * more, "\n")
    parts = [(file.name, file.replace_statements(region, region, text))]
    if passed is not None:
        parts.append((file.name, file.remove_item(parameters, parameters.index(passed))))
    callers = [*_list_callers(program, file, function)]
    for other, call, owner in callers:
        given = _find_arguments(function, call, owner is not None)
        value = given.get(passed.arg) if passed is not None else None
        splice = _wrap(other, call, value, file.get_text(context))
        if splice is None or (passed is not None and value is None):
            return None
        parts.append((other.name, splice))
    title = f"`with {ast.unparse(context)}:` around {format_amount(len(callers), 'call')} of `{function.name}`"
    return ProgramChange("code", title, tuple(parts), is_whole=True) if callers else None


def _wrap(file: ProgramFile, call: ast.Call, passed: ast.expr | None, context: str) -> Splice | None:
    """`with context: loss = f(x)`, without the context as an argument; None for a statement that does more."""
    statement, items = file.find_statement_of(call), file.list_items(call)
    values = [item.value if isinstance(item, ast.keyword) else item for item in items]
    calls = [node for value in values if value is not passed for node in ast.walk(value) if isinstance(node, ast.Call)]
    if statement is None or getattr(statement, "value", None) is not call or calls:
        return None
    start, end = file.find_span(statement)
    text = file.text[start:end]
    if passed is not None:
        removed, context = file.remove_item(items, values.index(passed)), file.get_text(passed)
        text = file.text[start : removed.start] + file.text[removed.end : end]
    indent = " " * (statement.col_offset + 4)
    return file.replace_statements(statement, statement, f"with {context}:\n{indent}" + text.replace("\n", "\n    "))


def _is_name(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Name) or (isinstance(node, ast.Tuple) and all(map(_is_name, node.elts)))


#: In the order in which their changes are preferred.
CODE_MOVES: tuple[Move, ...] = (
    CloneLayout(),
    ContiguousResult(),
    MoveOut(),
    ComputeInInit(),
    FillInInit(),
    WhereForBranch(),
    GradModeInThread(),
    CompileInside(),
    EagerFirst(),
)
