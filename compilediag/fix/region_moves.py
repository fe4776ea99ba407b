"""Moves that compile another region: the step of a loop in place of the loop, and autocast at the callers.

A function that is no longer compiled is still observed: its calls are counted, and what they return is compared.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator, Sequence

from ..diagnosis.program_file import CompileCall, ProgramFile
from ..diagnosis.source_edits import Splice, write_path
from ..events import Compile, GraphBreak
from ..formatting import format_amount, format_names
from ..trials.fresh_process import OBSERVE
from .code_moves import (
    Function,
    find_arguments,
    find_compile_calls,
    is_own_attribute,
    list_assigned,
    list_callers,
    list_functions,
    list_parameters,
)
from .program import Bundle, Observation, Program, ProgramChange, can_be_dynamic, change_file

#: A graph with so many calls may have a loop unrolled.
_LARGE_GRAPH = 500
#: How often a parameter is followed to a caller.
_MOST_CALLERS = 3
Part = tuple[str, Splice]
#: A statement that makes an object, its file, and how it is called there.
Made = tuple[ProgramFile, ast.stmt, str]


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
        for file, function in _list_compiled(seen, 1) if not seen.evidence.rows(GraphBreak) else ():
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
        for function in list_functions(file) if file is not None else ():
            if line == min(node.lineno for node in (function, *function.decorator_list)):
                yield file, function  # type: ignore[misc]


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
        if isinstance(value, ast.Call) and (isinstance(value.func, ast.Name) or is_own_attribute(value.func)):
            yield value.func


# What a function calls, compiled in its place


def _compile_inside(
    seen: Observation, file: ProgramFile, function: Function, callees: Sequence[ast.expr]
) -> Iterator[Bundle]:
    """With the options that the function has, and with `dynamic=True`."""
    program, has_sizes = seen.program, any(map(can_be_dynamic, seen.open_causes))
    names = format_names([f"`{ast.unparse(callee)}`" for callee in callees])
    for compiled in find_compile_calls(program, file, function):
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
        made, owner = _find_attribute(file, function, compiled, callee.attr), file.parents[function]
        defined = [(file, node) for node in getattr(owner, "body", ()) if getattr(node, "name", None) == callee.attr]
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


def _find_attribute(file: ProgramFile, function: Function, compiled: CompileCall, name: str) -> list[Made]:
    """An attribute of `self`: below what compiles the model, or in `__init__` if the method itself is compiled."""
    methods = (one for one in getattr(file.parents[function], "body", ()) if getattr(one, "name", None) == "__init__")
    made = [one for method in methods for one in method.body if name in list_assigned(one)]
    if compiled.node in function.decorator_list:
        return [(file, one, f"self.{name}") for one in made]
    statement = compiled.file.find_statement_of(compiled.node)
    path = write_path(compiled.result)
    return [(compiled.file, statement, f"{path}.{name}")] if made and statement is not None and path else []


def _find_made(program: Program, file: ProgramFile, function: Function | None, name: str, levels: int) -> list[Made]:
    """The statement that makes what a function has by this name; in the callers, if it is a parameter."""
    if function is not None and name in list_parameters(function):
        found = {}
        for other, call in program.list_calls(function.name) if levels else ():
            value = find_arguments(function, call, False).get(name)
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
    callers = [*list_callers(program, file, function)]
    for other, call, owner in callers:
        given = find_arguments(function, call, owner is not None)
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
