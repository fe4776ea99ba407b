"""Moves that change what the code does, and not only how it is compiled.

Each move is a syntactic change that keeps what is computed, as far as one function shows it. Runs decide the rest.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator, Mapping

from ..diagnosis.program_file import CompileCall, ProgramFile
from ..diagnosis.source_edits import write_path
from ..events import GraphBreak
from ..formatting import format_amount, format_place
from .program import Bundle, Move, Observation, Program, ProgramChange, can_be_dynamic, change_file

Function = ast.FunctionDef | ast.AsyncFunctionDef


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
        for call in seen.program.compile_calls:
            bundle = self._call_once(call)
            if bundle:
                yield bundle
        file = seen.program.main
        splice = file.insert_below_imports('torch.compiler.set_stance("eager_then_compile")')
        yield (change_file("code", "the first call of each function runs eagerly", file, splice),)

    def _call_once(self, call: CompileCall) -> Bundle:
        """`model(batch)` before the first `compiled(batch)`, if that is a statement that runs once."""
        target = ast.unparse(call.target) if call.target is not None else None
        if call.name is None or target is None or target == call.name or write_path(target) is None:
            return ()
        uses = [
            node
            for node in ast.walk(call.file.tree)
            if isinstance(node, ast.Call) and ast.unparse(node.func) == call.name and (node.args or node.keywords)
        ]
        first = min(uses, key=lambda node: (node.lineno, node.col_offset), default=None)
        statement = call.file.find_statement_of(first) if first is not None else None
        if first is None or statement is None or not _runs_once(call.file, statement):
            return ()
        arguments = call.file.get_text(first)[len(call.file.get_text(first.func)) :]
        splice = call.file.insert_before(statement, ["with torch.no_grad():", f"    {target}{arguments}"])
        if splice is None:
            return ()
        return (change_file("code", f"one call of {target} that is not compiled", call.file, splice),)


def _runs_once(file: ProgramFile, statement: ast.stmt) -> bool:
    """True outside of loops and functions."""
    node: ast.AST | None = statement
    while (node := file.parents.get(node)) is not None if node is not None else False:
        if isinstance(node, ast.For | ast.While | ast.AsyncFor | ast.FunctionDef | ast.AsyncFunctionDef):
            return False
    return True


# Statements of a compiled function


class MoveOut:
    """A statement that only keeps something goes from the compiled function to its callers:
    `self.sizes.append(x.shape[0])`, `self.calls += 1`.

    It reads only arguments, and nothing else in the function reads what it changes.
    """

    def propose(self, seen: Observation) -> Iterator[Bundle]:
        names = {name for cause in seen.open_causes for name in cause.path.names} - {"self"}
        lines = {(row.user_file, row.user_line) for row in seen.evidence.rows(GraphBreak)}
        for file in seen.program.files.values():
            for function in list_functions(file):
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
    for other, call, owner in list_callers(program, file, function):
        own = {} if owner is None or not names else {names[0]: owner}
        values = {**own, **find_arguments(function, call, bool(own))}
        text = _fill(statement, used if other is not file else used & {*names}, values)
        place = other.find_statement_of(call)
        inserted = other.insert_before(place, [text]) if text is not None and place is not None else None
        if inserted is None or _is_in_scope(other, call):
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


def list_parameters(function: Function) -> list[str]:
    arguments = function.args
    return [one.arg for one in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]


def find_arguments(function: Function, call: ast.Call, is_method: bool) -> dict[str, ast.expr]:
    """The values that a call of a function has for its parameters."""
    return {
        **dict(zip(list_parameters(function)[is_method:], call.args, strict=False)),
        **{one.arg: one.value for one in call.keywords if one.arg is not None},
    }


def list_callers(
    program: Program, file: ProgramFile, function: Function
) -> Iterator[tuple[ProgramFile, ast.Call, ast.expr | None]]:
    """The calls of a function that is compiled, with the object whose method it is."""
    is_method = isinstance(file.parents.get(function), ast.ClassDef)
    for compiled in find_compile_calls(program, file, function):
        if compiled.node not in function.decorator_list:
            found = program.list_calls(compiled.result)
        else:
            found = program.list_method_calls(function.name) if is_method else program.list_calls(function.name)
        for other, call in found:
            owner = call.func if function.name == "forward" else getattr(call.func, "value", None)
            yield other, call, owner if is_method else None


def find_compile_calls(program: Program, file: ProgramFile, function: Function) -> Iterator[CompileCall]:
    """Where the program compiles a function, or the module whose `forward` it is."""
    is_forward = isinstance(file.parents.get(function), ast.ClassDef) and function.name == "forward"
    for compiled in program.compile_calls:
        target = ast.unparse(compiled.target) if compiled.target else ""
        is_target = compiled.target is not None and (is_forward or target.rpartition(".")[2] == function.name)
        if is_target or compiled.node in function.decorator_list:
            yield compiled


def _is_in_scope(file: ProgramFile, node: ast.AST | None) -> bool:
    """True inside of a comprehension or a lambda, whose names do not exist before the statement."""
    scopes = (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
    while node is not None and not isinstance(node, ast.stmt):
        if isinstance(node, scopes):
            return True
        node = file.parents.get(node)
    return False


def list_functions(file: ProgramFile) -> Iterator[Function]:
    return (node for node in ast.walk(file.tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


class WhereForBranch:
    """`torch.where` in place of a branch on the values of a tensor that only chooses between two tensors."""

    def propose(self, seen: Observation) -> Iterator[Bundle]:
        lines = {(row.user_file, row.user_line) for row in seen.evidence.rows(GraphBreak)}
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
    if isinstance(first, ast.Continue) and second is None and len(after) == 1:
        last, found = after[0], _read_assignment(after[0])
        parts = None if found is None else (f"{found[0]} =", found[0], found[1])
    elif isinstance(first, ast.Return):
        last = branch if second is not None else next(iter(after), branch)
        parts = _choose_result(first, second or last)
    else:
        last, parts = branch, _choose_value(first, second)
    if parts is None:
        return None
    text = f"{parts[0]} torch.where({test}, {parts[1]}, {parts[2]})"
    splice = file.replace_statements(branch, last, text)
    return ProgramChange("code", f"`{text}`", ((file.name, splice),), is_whole=True)


def _choose_result(one: ast.Return, other: ast.stmt) -> tuple[str, str, str] | None:
    if one.value is None or not isinstance(other, ast.Return) or other.value is None:
        return None
    return "return", ast.unparse(one.value), ast.unparse(other.value)


def _choose_value(first: ast.stmt, second: ast.stmt | None) -> tuple[str, str, str] | None:
    one = _read_assignment(first)
    other = one and ((one[0], one[0]) if second is None else _read_assignment(second))
    if one is None or other is None or one[0] != other[0]:
        return None
    return f"{one[0]} =", one[1], other[1]


def _read_assignment(node: ast.stmt) -> tuple[str, str] | None:
    """The name and the new value of `y = a` or `y += a`."""
    if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
        return node.targets[0].id, ast.unparse(node.value)
    if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
        changed = ast.BinOp(ast.Name(node.target.id, ast.Load()), node.op, node.value)
        return node.target.id, ast.unparse(changed)
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
    assigned = {attribute: one for one in init.body for attribute in list_assigned(one)}
    changed = {
        attribute
        for one in owner.body
        if one is not init
        for node in ast.walk(one)
        for attribute in list_assigned(node)
    }
    if name not in assigned or name in changed:
        return
    local = {node.id for node in ast.walk(owner) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    local |= {node.arg for node in ast.walk(owner) if isinstance(node, ast.arg)} - {"self"}
    taken = {node.attr for node in ast.walk(owner) if isinstance(node, ast.Attribute)}
    for method in owner.body:
        for node in _list_largest(method, local) if isinstance(method, ast.FunctionDef) and method is not init else ():
            attributes = {one.attr for one in ast.walk(node) if is_own_attribute(one)}  # type: ignore[attr-defined]
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
            or is_own_attribute(one)
            or _is_function(one)
            for one in ast.walk(child)
        )
        if is_number and any(map(is_own_attribute, ast.walk(child))):
            yield child  # type: ignore[misc]
        else:
            yield from _list_largest(child, local)


def is_own_attribute(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self"


def _is_function(node: ast.AST) -> bool:
    """True for a call of a function of `math` or of Python's for numbers, and for its name."""
    if isinstance(node, ast.Call):
        named = node.func
        return _is_function(named) or (isinstance(named, ast.Name) and named.id in _NUMBER_FUNCTIONS)
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "math"


_NUMBER_FUNCTIONS = ("abs", "float", "int", "max", "min", "pow", "round")


def list_assigned(node: ast.AST) -> Iterator[str]:
    """The attributes of `self` that a statement assigns."""
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AugAssign) else []
    for target in targets:
        for one in target.elts if isinstance(target, ast.Tuple) else [target]:
            if is_own_attribute(one):
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
            empty = {name: one for one in unset for name in list_assigned(one) if name in names}
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
        if names & set(list_assigned(node))
    }
    for branch in (node for node in ast.walk(owner) if isinstance(node, ast.If)):
        if not any(is_own_attribute(node) and node.attr in names for node in ast.walk(branch.test)):  # type: ignore
            continue
        for statement in branch.body:
            call = statement.value if isinstance(statement, ast.Expr) else None
            is_fill = isinstance(call, ast.Call) and is_own_attribute(call.func) and call.func.attr in filling  # type: ignore
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


#: In the order in which their changes are preferred.
CODE_MOVES: tuple[Move, ...] = (
    CloneLayout(),
    ContiguousResult(),
    MoveOut(),
    ComputeInInit(),
    FillInInit(),
    WhereForBranch(),
    EagerFirst(),
)
