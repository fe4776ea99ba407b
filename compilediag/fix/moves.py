"""Moves: changes that may remove recompiles or graph breaks. A move only proposes; runs decide.

Each move reads what a run showed and proposes bundles of changes, the most likely first. A bundle is tried as a whole,
and what is not needed of it is left out afterwards. `MOVES` has them in the order in which a maintainer would like to
see their changes. Packages can add moves: an entry point of the group `compilediag.moves` names an object with
`propose`, as here.
"""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterable, Iterator, Mapping

from ..diagnosis.causes.cause import Cause, get_value_type
from ..diagnosis.causes.value_facts import find_threads
from ..diagnosis.change import BEGIN, CallSite, CodeChange, Settings, place_settings
from ..diagnosis.program_file import CompileCall, ProgramFile
from ..diagnosis.rule import make_dynamic_fix
from ..diagnosis.rules.break_even import DICT_TAGS, can_use_dict_tags
from ..diagnosis.rules.graph_breaks import find_remedy, list_breaks
from ..diagnosis.rules.recompiles import advise, place_changes
from ..diagnosis.source_edits import is_static, parse_call, replace_argument, write_path
from ..events import Compile
from ..formatting import format_line, format_names, format_place
from ..system import plugins
from .code_moves import CODE_MOVES, AutocastOutside, CacheAutocast, CompileStep, Function, list_parameters
from .program import (
    Bundle,
    Move,
    Observation,
    Program,
    ProgramChange,
    assign_settings,
    can_be_dynamic,
    change_edits,
    change_file,
)

#: Functions that mark a size, from the one that says most.
_MARKS = ("torch._dynamo.mark_dynamic", "torch._dynamo.maybe_mark_dynamic", "torch._dynamo.decorators.mark_unbacked")


# Dynamic at the place where the program compiles


class RemoveDynamicFalse:
    """The user's own `dynamic=False` is the first to go."""

    def propose(self, seen: Observation) -> Iterator[Bundle]:
        calls = [call for call in seen.program.compile_calls if any(map(is_static, call.options))]
        bundle = tuple(_set_options(calls, "dynamic", None, "remove dynamic=False"))
        if bundle:
            yield bundle


class DynamicTrue:
    """One `dynamic=True` where the program compiles, in place of many marks."""

    def propose(self, seen: Observation) -> Iterator[Bundle]:
        if any(map(can_be_dynamic, seen.open_causes)):
            bundle = tuple(_set_options(seen.program.compile_calls, "dynamic", "True", "dynamic=True"))
            if bundle:
                yield bundle
            else:  # A library compiles.
                yield _set(seen, seen.open_causes[0], {"assume_static_by_default": False})


class DictTags:
    """What is below dicts of modules that have not changed is not checked again, if cheaper guards are wanted."""

    def propose(self, seen: Observation) -> Iterator[Bundle]:
        is_wanted = any(row.guard_check_us for row in seen.evidence.rows(Compile))
        if is_wanted and can_use_dict_tags(seen.evidence):
            yield (assign_settings({DICT_TAGS: True}),)


class Isolate:
    """Entries of their own for each compiled object, where several share code."""

    def propose(self, seen: Observation) -> Iterator[Bundle]:
        bundle = tuple(
            _set_options(seen.program.compile_calls, "isolate_recompiles", "True", "isolate_recompiles=True")
        )
        if bundle and seen.open_causes:
            yield bundle


def _set_options(calls: Iterable[CompileCall], name: str, value: str | None, title: str) -> Iterator[ProgramChange]:
    for call in calls:
        splice = call.file.set_option(call.node, name, value, call.function is not None)
        if splice is not None:
            kind = "isolate" if name == "isolate_recompiles" else "dynamic"
            yield change_file(kind, f"{title}, {call.place}", call.file, splice)


# What the diagnosis predicts


class FollowPlan:
    """The plan's steps that a program can make: together, then one after the other."""

    def propose(self, seen: Observation) -> Iterator[Bundle]:
        steps = []
        for step in seen.plan.steps if seen.chosen is None else ():
            bundle = make_bundle(seen, CodeChange(step.settings, step.edits, step.change))
            steps += [bundle] if bundle else []
        if len(steps) > 1:
            yield tuple(change for bundle in steps for change in bundle)
        yield from steps


class TryAlternatives:
    """Other ways of the plan's steps, and of causes that no step resolves."""

    def propose(self, seen: Observation) -> Iterator[Bundle]:
        for cause in seen.open_causes:
            for change in place_changes(advise(cause.alone).changes, cause):
                bundle = make_bundle(seen, change)
                if bundle:
                    yield bundle


def make_bundle(seen: Observation, change: CodeChange) -> Bundle:
    """A change of the diagnosis as one of the program; empty if it does not fit, or only a person can make it."""
    edits = [edit for edit in change.edits if edit.kind != BEGIN]
    if all(edit.kind == "replace" and not edit.call for edit in edits):
        kind = "dynamic"
    elif all("mark_" in edit.new for edit in edits):
        kind = "marks"
    else:
        kind = "tensor" if any("tensor(" in edit.new for edit in edits) else "code"
    found = [change_edits(seen, edits, kind, format_line(change.code, 80))] if edits else []
    found += seen.change_settings(change)
    return () if None in found else tuple(one for one in found if one is not None)


# Marks


class MarkEverywhere:
    """The marks of all sizes that changed, at every call of the function: also where nothing recompiled yet."""

    def propose(self, seen: Observation) -> Iterator[Bundle]:
        wanted = [*_list_sizes(seen.causes)]
        for mark in _MARKS:
            lines: dict[tuple[str, int], tuple[ProgramFile, ast.stmt, dict[str, None]]] = {}
            for site, value, dim in wanted:
                for file, statement, argument in _find_arguments(seen.program, site, value):
                    key = (file.name, statement.lineno)
                    _, _, found = lines.setdefault(key, (file, statement, {}))
                    found[f"{mark}({argument}, {dim})"] = None
            changes = [
                change_file("marks", format_names([*texts]), file, splice)
                for file, statement, texts in lines.values()
                if (splice := file.insert_before(statement, [*texts])) is not None
            ]
            if changes:
                yield tuple(changes)


def _list_sizes(causes: Iterable[Cause]) -> Iterator[tuple[CallSite, str, int]]:
    """The call, the tensor in the user's names there, and the dimension, of each size that changed."""
    for cause in causes:
        site = cause.call_site
        for path in cause.user.paths:
            owner = write_path(path.owner.code)
            if site is not None and site.call and path.is_size and path.dim is not None and owner is not None:
                yield site, owner, path.dim


def _find_arguments(program: Program, site: CallSite, value: str) -> Iterator[tuple[ProgramFile, ast.stmt, str]]:
    """The statements that call what `site` calls, and what each passes where the site passes `value`."""
    call = parse_call(site.call or "")
    if call is None:
        return
    texts = ((place, ast.unparse(node)) for place, node in _list_places(call))
    found = [(place, text) for place, text in texts if value == text or value.startswith((f"{text}.", f"{text}["))]
    if not found:
        return
    at, own = found[0]
    for file, other in program.list_calls(ast.unparse(call.func)):
        node, statement = dict(_list_places(other)).get(at), file.find_statement_of(other)
        argument = write_path(ast.unparse(node)) if node is not None else None
        if argument is not None and statement is not None:
            yield file, statement, argument + value[len(own) :]


def _list_places(call: ast.Call) -> list[tuple[int | str, ast.expr]]:
    """The arguments of a call with their position or keyword."""
    named = [(keyword.arg, keyword.value) for keyword in call.keywords if keyword.arg is not None]
    return [*enumerate(call.args), *named]


# Settings

#: Setting -> the causes that it may resolve.
_SETTINGS = (
    ({"use_duck_shape": False}, lambda cause: cause.is_relation),
    ({"allow_unspec_int_on_nn_module": True}, lambda cause: cause.path.is_module_attribute and _has_type(cause, "int")),
    ({"specialize_float": False}, lambda cause: _has_type(cause, "float")),
    ({"force_parameter_static_shapes": False}, lambda cause: cause.facts.is_parameter),
    ({"force_nn_module_property_static_shapes": False}, lambda cause: cause.path.is_module_attribute),
)


def _set(seen: Observation, cause: Cause, settings: Mapping[str, str | int | bool]) -> Bundle:
    """Settings where they are in force for a cause."""
    return make_bundle(seen, place_settings(CodeChange({**settings}), cause.facts.threads))


class Configure:
    """Settings of torch that make more dynamic, by the kind of what changed; where a library copies the argument, marks
    on it are lost, and naming torch's sources is not.
    """

    def propose(self, seen: Observation) -> Iterator[Bundle]:
        named: list[ProgramChange] = []
        for cause in seen.open_causes:
            fitting = [settings for settings, fits in _SETTINGS if fits(cause) and cause.kind != "length"]
            yield from (_set(seen, cause, settings) for settings in fitting)
            sources = make_dynamic_fix(cause) if can_be_dynamic(cause) else None
            named += _set(seen, cause, sources) if sources else ()
        if named:
            yield tuple(named)
        breaks = list_breaks(seen.evidence)
        found: Settings = {}
        for remedy in filter(None, map(find_remedy, breaks)):
            found.update(remedy.settings or {})
        threads = find_threads(seen.evidence).list_all(breaks)
        for settings in [{name: value} for name, value in found.items()] + ([found] if len(found) > 1 else []):
            yield make_bundle(seen, place_settings(CodeChange({**settings}), threads))


class PrintLater:
    """`print` and functions of `logging` after the graph, in place of a graph break at each. One f-string replaces the
    arguments of each `print`: torch moves no tuple or list.
    """

    def propose(self, seen: Observation) -> Iterator[Bundle]:
        rows = list_breaks(seen.evidence)
        remedies = filter(None, map(find_remedy, rows))
        for code in dict.fromkeys(remedy.code for remedy in remedies if not remedy.settings):
            call = parse_call(code)
            if call is not None and len(call.args) == 1 and ast.unparse(call.func) in _REGISTERS:
                name = write_path(ast.unparse(call.args[0]))
                if name is not None:
                    yield (_register(seen, ast.unparse(call.func), name),)
        lines = {(row.user_file, row.user_line) for row in rows}
        texts = []
        for file, printed in seen.program.list_calls("print"):
            is_plain = not printed.keywords and not any(isinstance(each, ast.Starred) for each in printed.args)
            if not (is_plain and printed.args and (file.name, printed.lineno) in lines):
                continue
            parts: list[ast.expr] = []
            for value in printed.args:
                text = ast.FormattedValue(value, conversion=-1)
                parts += [
                    ast.Constant(" "),
                    ast.Constant(str(value.value)) if isinstance(value, ast.Constant) else text,
                ]
            new = f"print({ast.unparse(ast.JoinedStr(parts[1:]))})"
            title = f"one text, {format_place(file.name, printed.lineno)}"
            texts.append(change_file("code", title, file, file.replace(printed, new)))
        if texts:
            yield (*texts, _register(seen, _REGISTERS[0], "print"))


def _register(seen: Observation, function: str, name: str) -> ProgramChange:
    file, line = seen.program.main, f"{function}({name})"
    return change_file("settings", line, file, file.insert_below_imports(line))


_REGISTERS = tuple(
    f"torch._dynamo.config.{name}.add" for name in ("reorderable_logging_functions", "ignore_logging_functions")
)


def _has_type(cause: Cause, *names: str) -> bool:
    return any(get_value_type(value) in names for value in cause.values)


# Numbers


class SymbolicNumber:
    """`SymInt` for `int` in the schema of a custom operator: an `int` is one number in each graph."""

    def propose(self, seen: Observation) -> Iterator[Bundle]:
        lines = [cause.user_code or "" for cause in seen.open_causes if _has_type(cause, "int")]
        for file, node in seen.program.list_method_calls("define"):
            for schema in node.args:
                name, _, arguments = str(getattr(schema, "value", "")).partition("(")
                called = re.compile(rf"\b{re.escape(name.rpartition('::')[2])}\b")
                if _INT.search(arguments.partition("->")[0]) and any(map(called.search, lines)):
                    before, arrow, after = file.get_text(schema).partition("->")
                    title = f"SymInt in the schema of {name}, {format_place(file.name, schema.lineno)}"
                    splice = file.replace(schema, _INT.sub("SymInt", before) + arrow + after)
                    yield (change_file("code", title, file, splice),)


_INT = re.compile(r"\bint(?=\s+\w|\[|\?)")


class TensorForNumber:
    """A 0-dimensional tensor for a number that changes, where it comes from: at the call, where a name, an attribute or
    an item is set, as a parameter that an inner function reads, as a buffer, or else before the call. In the end all
    numbers at once: a number that stays can hide what a tensor saves.
    """

    def propose(self, seen: Observation) -> Iterator[Bundle]:
        numbers = (cause for cause in seen.open_causes if not cause.path.is_size)
        found = [[*_list_tensors(seen, cause)] for cause in numbers if _has_type(cause, "float", "int")]
        yield from itertools.chain.from_iterable(found)
        firsts = [bundles[0] for bundles in found if bundles]
        if len(firsts) > 1:
            yield tuple(dict.fromkeys(itertools.chain.from_iterable(firsts)))


def _list_tensors(seen: Observation, cause: Cause) -> Iterator[Bundle]:
    edits = replace_argument(cause.values_at, "torch.tensor({0})")
    change = change_edits(seen, edits, "tensor", f"torch.tensor({cause.name})") if edits else None
    if change is not None:
        yield (change,)
    last = cause.path.steps[-1] if cause.path.steps else None
    kind, key = ("name", cause.path.root) if last is None else (last.kind, last.value)
    if not isinstance(key, str) or (last is None and edits):
        return
    tensors = [*_list_parameters_read_inside(seen.program, key)] if last is None and cause.path.scope != "G" else []
    buffers = []
    for file, value, name in _list_values(seen.program, kind, key):
        made, statement = f"torch.tensor({file.get_text(value)})", file.find_statement_of(value)
        title = f"`{name}` as a tensor, {format_place(file.name, value.lineno)}"
        tensors.append(change_file("tensor", title, file, file.replace(value, made)))
        owner = name.removesuffix(f".{key}") if kind == "attr" else ""
        function = file.find_function(statement.lineno) if statement is not None else None
        # A plain class, without bases, has no buffers.
        is_made = (
            function is not None and function.name == "__init__" and bool(getattr(file.parents[function], "bases", []))
        )
        if owner.isidentifier() and statement and is_made:
            text = f'{owner}.register_buffer("{key}", {made})'
            title = f"`{name}` as a buffer, {format_place(file.name, statement.lineno)}"
            buffers.append(change_file("tensor", title, file, file.replace_statements(statement, statement, text)))
    yield from (tuple(bundle) for bundle in (tensors or _set_before_calls(seen.program, cause), buffers) if bundle)


def _list_values(program: Program, kind: str, name: str) -> Iterator[tuple[ProgramFile, ast.expr, str]]:
    """What is assigned to a name that is a global (`STEP = 0`) or that an inner function reads, to an attribute
    (`self.scale = 0.5`), or to an item: `group["lr"] = 0.1`, or `lr=0.1` where an optimizer is made.
    """
    for file, node in program.walk(ast.AST):
        if isinstance(node, ast.Call) and kind not in ("name", "attr"):
            yield from ((file, keyword.value, name) for keyword in node.keywords if keyword.arg == name)
        if not isinstance(node, ast.Assign):
            continue
        target = node.targets[0]
        if kind == "name":
            is_meant = [ast.unparse(each) for each in node.targets] == [name]
            function = file.find_function(node.lineno) if is_meant else None
            if function is not None:
                is_global = any(name in one.names for one in ast.walk(function) if isinstance(one, ast.Global))
                is_meant = is_global or _is_read_inside(function, name)
        elif kind == "attr":
            is_meant = len(node.targets) == 1 and isinstance(target, ast.Attribute) and target.attr == name
        else:
            is_meant = isinstance(target, ast.Subscript) and ast.unparse(target.slice) == repr(name)
        if is_meant:
            yield file, node.value, ast.unparse(target) if kind == "attr" else name


def _list_parameters_read_inside(program: Program, name: str) -> Iterator[ProgramChange]:
    """`window = torch.tensor(window)` in each function with such a parameter that an inner function reads."""
    for file, function in program.walk(ast.FunctionDef):
        if name in list_parameters(function) and _is_read_inside(function, name):
            line = f"{name} = torch.tensor({name})"
            splice = file.begin_function(function, [line])
            if splice is not None:
                yield change_file("tensor", f"{line}, {format_place(file.name, function.lineno)}", file, splice)


def _is_read_inside(function: Function, name: str) -> bool:
    """True if a function inside of this one reads a name that is not its own."""
    inner = (node for node in ast.walk(function) if node is not function and isinstance(node, Function | ast.Lambda))
    return any(
        isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load)
        for one in inner
        if name not in list_parameters(one)
        for node in ast.walk(one)
    )


def _set_before_calls(program: Program, cause: Cause) -> list[ProgramChange]:
    """`params.scale = torch.as_tensor(params.scale)` before each call that recompiled."""
    changes = []
    for site, value in cause.values_at.items():
        path, call, file = write_path(value), parse_call(site.call or ""), program.find(site.file)
        called = program.list_calls(ast.unparse(call.func)) if call is not None else ()
        found = (one for other, one in called if other is file and one.lineno <= site.line <= (one.end_lineno or 0))
        node = next(found, None)
        statement = file.find_statement_of(node) if file is not None and node is not None else None
        if file is None or statement is None or path is None or not cause.path.steps:
            return []
        line = f"{path} = torch.as_tensor({path})"
        splice = file.insert_before(statement, [line])
        changes += [change_file("tensor", line, file, splice)] if splice is not None else []
    return changes


#: All moves, in the order in which their changes are preferred.
MOVES: tuple[Move, ...] = (
    CompileStep(),
    RemoveDynamicFalse(),
    FollowPlan(),
    MarkEverywhere(),
    DynamicTrue(),
    AutocastOutside(),
    CacheAutocast(),
    Configure(),
    PrintLater(),
    TryAlternatives(),
    SymbolicNumber(),
    TensorForNumber(),
    *CODE_MOVES,
    Isolate(),
    DictTags(),
)
#: Those that are tried on the unchanged program before the best of them is built on.
FIRST: tuple[Move, ...] = MOVES[:7]


def list_moves() -> list[Move]:
    """The moves of this package, then those of plug-ins."""
    found: list[Move | None] = [plugin.use(lambda move: move) for plugin in plugins.list_plugins("moves")]
    return [*MOVES, *(move for move in found if move is not None)]
