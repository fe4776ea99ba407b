"""Moves: changes that may remove recompiles or graph breaks. A move only proposes; runs decide.

Each move reads what a run showed and proposes bundles of changes, the most likely first. A bundle is tried as a whole,
and what is not needed of it is left out afterwards. `MOVES` has them in the order in which a maintainer would like to
see their changes. Packages can add moves: an entry point of the group `compilediag.moves` names an object with
`propose`, as here.
"""

from __future__ import annotations

import ast
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
from .code_moves import CODE_MOVES, AutocastOutside, CacheAutocast, CompileStep
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
        for step in seen.plan.steps:
            bundle = _make_bundle(seen, CodeChange(step.settings, step.edits, step.change))
            steps += [bundle] if bundle else []
        if len(steps) > 1:
            yield tuple(change for bundle in steps for change in bundle)
        yield from steps


class TryAlternatives:
    """Other ways of the plan's steps, and of causes that no step resolves."""

    def propose(self, seen: Observation) -> Iterator[Bundle]:
        for cause in seen.open_causes:
            for change in place_changes(advise(cause.alone).changes, cause):
                bundle = _make_bundle(seen, change)
                if bundle:
                    yield bundle


def _make_bundle(seen: Observation, change: CodeChange) -> Bundle:
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
    return _make_bundle(seen, place_settings(CodeChange({**settings}), cause.facts.threads))


class Configure:
    """Settings of torch that make more dynamic, by the kind of what changed; where a library copies the argument, marks
    on it are lost, and naming torch's sources is not.
    """

    def propose(self, seen: Observation) -> Iterator[Bundle]:
        named: list[ProgramChange] = []
        for cause in seen.open_causes:
            yield from (_set(seen, cause, settings) for settings, fits in _SETTINGS if fits(cause))
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
            yield _make_bundle(seen, place_settings(CodeChange({**settings}), threads))


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


def _has_type(cause: Cause, name: str) -> bool:
    return any(get_value_type(value) == name for value in cause.values)


# Tensors in place of numbers


class TensorForNumber:
    """A 0-dimensional tensor for a number that changes: at the call, where the attribute is set, or as a buffer."""

    def propose(self, seen: Observation) -> Iterator[Bundle]:
        for cause in seen.open_causes:
            if not (_has_type(cause, "float") or _has_type(cause, "int")) or cause.path.is_size:
                continue
            edits = replace_argument(cause.values_at, "torch.tensor({0})")
            change = change_edits(seen, edits, "tensor", f"torch.tensor({cause.name})") if edits else None
            if change is not None:
                yield (change,)
            last = cause.path.steps[-1] if cause.path.steps else None
            kind, key = ("global", cause.path.root) if last is None else (last.kind, last.value)
            if not isinstance(key, str) or (last is None and cause.path.scope != "G"):
                continue
            tensors, buffers = [], []
            for file, value, name in _list_values(seen.program, kind, key):
                made, statement = f"torch.tensor({file.get_text(value)})", file.find_statement_of(value)
                title = f"`{name}` as a tensor, {format_place(file.name, value.lineno)}"
                tensors.append(change_file("tensor", title, file, file.replace(value, made)))
                owner = name.removesuffix(f".{key}") if kind == "attr" else ""
                function = file.find_function(statement.lineno) if statement is not None else None
                if owner.isidentifier() and statement and function is not None and function.name == "__init__":
                    text = f'{owner}.register_buffer("{key}", {made})'
                    title = f"`{name}` as a buffer, {format_place(file.name, statement.lineno)}"
                    buffers.append(
                        change_file("tensor", title, file, file.replace_statements(statement, statement, text))
                    )
            yield from (tuple(bundle) for bundle in (tensors, buffers) if bundle)


def _list_values(program: Program, kind: str, name: str) -> Iterator[tuple[ProgramFile, ast.expr, str]]:
    """What is assigned to a global (`STEP = 0`), an attribute (`self.scale = 0.5`), or an item: `group["lr"] = 0.1`, or
    `lr=0.1` where an optimizer is made.
    """
    for file, node in program.walk(ast.AST):
        if isinstance(node, ast.Call) and kind not in ("global", "attr"):
            yield from ((file, keyword.value, name) for keyword in node.keywords if keyword.arg == name)
        if not isinstance(node, ast.Assign):
            continue
        target = node.targets[0]
        if kind == "global":
            is_meant = [ast.unparse(each) for each in node.targets] == [name]
            function = file.find_function(node.lineno) if is_meant else None
            if function is not None:
                is_meant = any(name in one.names for one in ast.walk(function) if isinstance(one, ast.Global))
        elif kind == "attr":
            is_meant = len(node.targets) == 1 and isinstance(target, ast.Attribute) and target.attr == name
        else:
            is_meant = isinstance(target, ast.Subscript) and ast.unparse(target.slice) == repr(name)
        if is_meant:
            yield file, node.value, ast.unparse(target) if kind == "attr" else name


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
