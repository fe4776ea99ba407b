"""Where the user's own code calls into compiled code, and what a guarded value is called there."""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple, TypedDict

from ...decode.call_stacks import Frame, OwnCode, is_torch_file
from ...decode.calls import (
    Argument,
    MappingFailed,
    ObjectUse,
    ParsedCall,
    Passed,
    Signature,
    bind_path,
    find_call,
    find_compiled_call,
    follow_torch_frames,
    get_text,
    is_passed_through,
    open_displays,
    read_path,
    read_signature,
    shorten,
)
from ...decode.guards.path import Path, Step, list_sources, parse_expression
from ...events import Compile, GraphBreak, Recompile, RefusedCall, Rows, StackFrame
from ...formatting import format_place, parse_resumed
from ..change import CallSite
from ..evidence import Evidence, Place, find_first, get_place, kept

#: Frames that Python makes for a comprehension, up to 3.11: the function around it is the user's.
_COMPREHENSIONS = ("<listcomp>", "<setcomp>", "<dictcomp>")
#: Frames whose names are bound inside a statement.
_INSIDE = (*_COMPREHENSIONS, "<genexpr>", "<lambda>")
#: Modules whose globals have the same name everywhere.
_MODULES = frozenset({"os", "sys", "torch"})
#: How names begin that Dynamo makes up for values of the code after a graph break.
_MADE_UP = ("___", "__nested_", ".")
_PRIMARY = (ast.Name, ast.Attribute, ast.Subscript, ast.Call, ast.Dict, ast.List, ast.ListComp, ast.Tuple)
#: Expressions that may do something else, or give another object, when they are evaluated again.
_EVALUATED_ONCE = (
    *(ast.Call, ast.Await, ast.Yield, ast.YieldFrom, ast.NamedExpr, ast.Slice, ast.BinOp, ast.UnaryOp),
    *(ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.Lambda),
)
#: Attributes of a tensor that are another tensor each time: what is marked is gone before the call.
_MADE_EACH_TIME = frozenset({"data", "T", "mT", "H", "mH", "real", "imag"})
#: A size, and the function that it was guarded in.
SizeAt = tuple[Place, str]
#: Names that are looked up of one value: it has the same one at almost all of its calls.
_MAX_ROWS = 64


@dataclass(frozen=True)
class NamedValue:
    """A guarded value in the user's names at the call site; several of a guard on how they relate.

    Without a name there it has no paths, and `reason` says why, in one line. `is_inside` is true for names that are
    bound inside the statement.
    """

    paths: tuple[Path, ...] = ()
    is_inside: bool = False
    reason: str | None = None

    @cached_property
    def expression(self) -> str | None:
        """The value as the user would write it: `ids.shape[0]`."""
        return ", ".join(path.code for path in self.paths) or None

    @cached_property
    def base(self) -> str | None:
        """What is passed: `ids` of `ids.shape[0]`, and of `len(ids)`."""
        return _find_base(self.paths[0]).code if self.paths else None

    @cached_property
    def is_duplicable(self) -> bool:
        """False if what is passed has to be evaluated once only, or has no value before the statement."""
        return bool(self.paths) and not self.is_inside and all(_is_duplicable(_find_base(path)) for path in self.paths)


@dataclass(frozen=True)
class NamedSite:
    """A line of the user's own code that calls into a compiled function, and what guarded values are called there.

    `sources` are the values that the compiled code has there. `names` maps each to its value without a tensor's
    property; only values that can be evaluated twice are in it.
    """

    site: CallSite
    names: Mapping[str, str] = field(default_factory=dict)
    sources: frozenset[str] = frozenset()


@dataclass(frozen=True)
class UserNames:
    """Where a cause is in the user's own code.

    `site` is the line that calls into compiled code and `paths` the value there; without one, `reason` says why.
    `sites` are all lines at which it recompiled, or at which the entries that it did not fit were compiled; the first
    of the program first. `is_whole`: all values that changed with it are values of these lines, none is computed.
    """

    site: CallSite | None = None
    paths: tuple[Path, ...] = ()
    reason: str | None = None
    sites: tuple[NamedSite, ...] = ()
    is_whole: bool = False

    @cached_property
    def expression(self) -> str | None:
        """The value as the user would write it there: `ids.shape[0]`; None without a name."""
        return ", ".join(path.code for path in self.paths) or None

    @cached_property
    def value(self) -> str | None:
        """The same without a tensor's property: `ids`."""
        return ", ".join(path.owner.code for path in self.paths) or None


def merge_names(names: Sequence[UserNames]) -> UserNames:
    """The names of causes that are one, at all of their lines."""
    sites: dict[tuple[str, int], NamedSite] = {}
    for one in (site for found in names for site in found.sites):
        known = sites.setdefault((one.site.file, one.site.line), one)
        sites[one.site.file, one.site.line] = replace(
            known, names={**one.names, **known.names}, sources=known.sources | one.sources
        )
    return replace(names[0], sites=tuple(sites.values()), is_whole=all(one.is_whole for one in names))


class CallSites:
    """Finds the call sites of a session's compiles and the names of guarded values there. The same source in the same
    stack has the same name.
    """

    def __init__(self, evidence: Evidence):
        self._own = read_own_code(evidence)
        self._stacks = evidence.stacks
        self._paths: dict[str, tuple[tuple[StackFrame, ...], int | None]] = {}
        self._sites: dict[str, CallSite | None] = {}
        self._names: dict[tuple[str | None, str], NamedValue] = {}

    def find(self, compile_key: str | None) -> CallSite | None:
        """The line of the user's own code that calls into compiled code; None if no such frame is recorded."""
        stack = self._stacks.find(compile_key)
        if stack is None:
            return None
        if stack not in self._sites:
            path, at = self._get_path(stack)
            self._sites[stack] = None if at is None else _make_site(path, at)
        return self._sites[stack]

    def name(self, compile_key: str | None, source: str) -> NamedValue:
        """What a value of the compiled function is called at its call site; several sources are joined by commas."""
        if compile_key is None:
            return _fail("the compile is not recorded")
        stack = self._stacks.find(compile_key)
        if (stack, source) not in self._names:
            values = [self._name_one(stack, value) for value in list_sources(source)]
            self._names[stack, source] = _join_values(values)
        return self._names[stack, source]

    def _name_one(self, stack: str | None, value: Path) -> NamedValue:
        """Follow a value from the compiled function, the last level, to the call site, the first one."""
        path, at = self._get_path(stack)
        if at is None:
            return _fail("no frame of your own code calls it" if path else "its call stack is not recorded")
        if not value.root.isidentifier() or value.steps[:1] == (Step("call"),):
            return _fail(f"`{shorten(value.text)}` is not one value")
        levels = _make_levels(path[at:])
        try:
            return _follow(levels, len(levels) - 1, value)
        except MappingFailed as error:
            return _fail(str(error))

    def _get_path(self, stack: str | None) -> tuple[tuple[StackFrame, ...], int | None]:
        """The frames of a stack, outermost first, of which the compiled one is the last, and the call site's place."""
        if stack is None:
            return (), None
        if stack not in self._paths:
            path = tuple(reversed([*self._stacks.walk(stack)]))
            self._paths[stack] = path, self._find_place(path)
        return self._paths[stack]

    def _find_place(self, path: Sequence[StackFrame]) -> int | None:
        """The place of the call site in a stack."""
        compiled = find_compiled_call(path)
        outside = _drop_resumed(path) if compiled is None else range(compiled)
        own = [at for at in outside if self._own.is_own(path[at].file, path[at].function, path[at].code)]
        named = [at for at in outside if self._own.matches(path[at].file)] if self._own.is_named else []
        places = [at for at in named or own if path[at].line is not None]
        return _leave_decorators(path, places)

    # The values of recompiles

    def find_key(self, row: Recompile) -> str | None:
        """A text that is equal for guards on one expression at one line of the user's code; None without a name."""
        site, value = self._find_value(row)
        if site is None or not row.guard_source or value is None or value.expression is None:
            return None
        return f"{site.file}:{site.line}:{value.expression}"

    def find_position(self, row: Recompile) -> int | None:
        """Where the user's call has the value: the offset in its text; None if it is not there."""
        site, value = self._find_value(row)
        if site is None or not site.call or value is None or value.base is None:
            return None
        found = re.search(rf"(?<![\w.]){re.escape(value.base)}(?!\w)", site.call)
        return found.start() if found else None

    def find_names(
        self, rows: Iterable[Recompile], members: Sequence[Recompile], others: Iterable[SizeAt]
    ) -> UserNames:
        """The names of a cause by its recompiles. `members` are recompiles by all values that are the same change, and
        `others` the sizes of guards that failed beside it, each with its function.
        """
        found, reason, first = [*rows][:_MAX_ROWS], None, None
        for row in found:
            site, value = self._find_value(row)
            if site is not None and value is not None and value.expression is not None:
                is_whole = all(self.name(one.compile_key, one.guard_source or "").base for one in members)
                # In the user's own function, its parameter reads better than a call such as `torch.randn(size, 16)`.
                is_own = self._own.is_own(row.file, row.function) and "(" in (value.base or "")
                paths = list_sources(row.guard_source or "") if is_own else value.paths
                return UserNames(site, paths, None, self._list_sites(found, {*others}), is_whole)
            first, reason = first or site, reason or (value.reason if value is not None else None)
        return UserNames(first, (), reason)

    def _find_value(self, row: Recompile) -> tuple[CallSite | None, NamedValue | None]:
        """The call site of a recompile, and its guarded value there."""
        site = self.find(row.compile_key)
        return site, self.name(row.compile_key, row.guard_source or "") if site is not None else None

    def _list_sites(self, rows: list[Recompile], others: set[SizeAt]) -> tuple[NamedSite, ...]:
        """The lines with the names of the values there. A value is one of the function that it was guarded in."""
        sources = others | {(get_place(row), row.guard_source or "") for row in rows}
        found: dict[tuple[str, int], NamedSite] = {}
        for place, key in ((get_place(row), key) for row in rows for key in (row.closest_compile_key, row.compile_key)):
            site = self.find(key)
            if site is not None:
                known = found.get((site.file, site.line)) or NamedSite(site)
                own = frozenset(source for at, source in sources if at == place and source) - known.sources
                named = ((source, self.name(key, source)) for source in own)
                names = {source: one.base for source, one in named if one.base is not None and one.is_duplicable}
                found[site.file, site.line] = replace(
                    known, names={**known.names, **names}, sources=known.sources | own
                )
        return tuple(found.values())


@kept
def find_call_sites(evidence: Evidence) -> CallSites:
    """The call sites of a session, by the user's own code as the session defines it."""
    return CallSites(evidence)


class CallFields(TypedDict):
    """The fields of a finding that name the user's line."""

    call_file: str | None
    call_line: int | None


def make_call_fields(site: CallSite | None) -> CallFields:
    """A call site as fields of a finding."""
    return {"call_file": site.file if site else None, "call_line": site.line if site else None}


def find_call_fields(data: Rows, rows: Iterable[Compile | GraphBreak | RefusedCall]) -> CallFields:
    """The user's line that calls what a finding is about: that of the first of these rows that has one."""
    sites = find_call_sites(data)
    return make_call_fields(find_first(sites.find(row.compile_key) for row in rows))


@kept
def read_own_code(evidence: Evidence) -> OwnCode:
    """Which files are the user's own: what the session names, else all that are not torch's, Python's or an installed
    package's.
    """
    named, libraries = (evidence.meta.get(name) for name in ("my_code", "library_folders"))
    return OwnCode(_list_texts(named), _list_texts(libraries))


def _fail(reason: str) -> NamedValue:
    return NamedValue(reason=reason)


def _join_values(values: Sequence[NamedValue]) -> NamedValue:
    """The names of several values as one; none if one of them has none."""
    failed = next((value for value in values if not value.paths), None)
    if failed or len(values) == 1:
        return failed or values[0]
    return NamedValue(tuple(path for value in values for path in value.paths), any(value.is_inside for value in values))


def _list_texts(value: object) -> list[str]:
    return [text for text in value if isinstance(text, str)] if isinstance(value, (list, tuple)) else []


def _drop_resumed(path: Sequence[StackFrame]) -> range:
    """The frames around a compiled function. The code after a graph break is called by the function itself."""
    end = len(path) - 1
    while end > 0 and (resumed := parse_resumed(path[end].function)) is not None:
        inside = [at for at in range(end) if path[at].function == resumed[0] and path[at].file == path[end].file]
        end = inside[-1] if inside else end - 1
    return range(max(end, 0))


def _leave_decorators(path: Sequence[StackFrame], places: list[int]) -> int | None:
    """The innermost place that has the arguments: a decorator that only passes them on was called by another one."""
    for outer, at in reversed(list(itertools.pairwise(places))):
        between = path[outer + 1 : at]
        if not _passes_on(path[at]) or not all(is_torch_file(row.file or "") for row in between):
            return at
    return min(places, default=None)


def _passes_on(row: StackFrame) -> bool:
    if row.call is None or row.parameters is None or row.assigned:
        return False
    try:
        call = find_call(row.call, None, "")
    except MappingFailed:
        return False
    return isinstance(call, ParsedCall) and is_passed_through(read_signature(row.parameters), call)


def _make_site(path: Sequence[StackFrame], at: int) -> CallSite:
    row = path[at]
    outer = at
    while outer > 0 and path[outer].function in _COMPREHENSIONS and path[outer - 1].file == row.file:
        outer -= 1
    return CallSite(row.file or "", row.line or 0, path[outer].function, row.code, row.call)


# From the compiled function to the call site


class _Level(NamedTuple):
    """A frame outside torch, the parameters of its function, and torch's frames between its caller and it."""

    row: StackFrame
    signature: Signature | None
    torch_frames: tuple[Frame, ...]

    @property
    def function(self) -> str:
        return self.row.function or ""

    @property
    def where(self) -> str:
        return f"{self.row.function} ({format_place(self.row.file, self.row.line)})"


def _make_levels(path: Sequence[StackFrame]) -> list[_Level]:
    """The frames outside torch from the call site to the compiled function, each with torch's frames before it."""
    steps: list[_Level] = []
    between: list[Frame] = []
    for at, row in enumerate(path):
        if at == len(path) - 1 or not is_torch_file(row.file or ""):
            signature = None if row.parameters is None else read_signature(row.parameters)
            steps.append(_Level(row, signature, tuple(between)))
            between = []
        else:
            between.append(Frame(row.file, row.line, row.function, row.code))
    return steps


def _follow(steps: list[_Level], at: int, path: Path) -> NamedValue:
    at, path = _leave_resumed(steps, at, path)
    if at == 0:
        return NamedValue((path,))
    signature = steps[at].signature
    # A log has no parameters: what no argument is called is found out by what calls it.
    if signature is not None and path.root not in signature.names:
        # A global, or a variable of the function around, has the same name in the whole file.
        if steps[at].row.file != steps[0].row.file and path.root not in _MODULES:
            raise MappingFailed(f"`{path.root}` is a global of {format_place(steps[at].row.file, None)}")
        return NamedValue((path,))
    arguments, text = _bind(steps[at], steps[at - 1], path)
    if at == 1:
        if len(arguments) > 1:
            raise MappingFailed(f"`{path.root}` is one of several arguments of `{shorten(text)}`")
        return _write(steps[0], arguments[0], text)
    failures = []
    for argument in arguments:
        try:
            return _follow(steps, at - 1, _continue(steps[at - 1], argument, text))
        except MappingFailed as error:
            failures.append(error)
    raise failures[-1]


def _leave_resumed(steps: list[_Level], at: int, path: Path) -> tuple[int, Path]:
    """The step of the function itself, where the value is one of the code after a graph break in it."""
    inner = steps[at]
    resumed = parse_resumed(inner.row.function)
    if resumed is None:
        return at, path
    if path.root.startswith(_MADE_UP):
        raise MappingFailed(f"`{path.root}` is a value of the code before the graph break; it has no name")
    while at > 0 and parse_resumed(steps[at].row.function) is not None:
        at -= 1
    own = steps[at]
    if own.row.function != resumed[0]:
        raise MappingFailed(f"the call of {resumed[0]} is part of the compiled code of {own.where}")
    if _has(inner, path.root) and own.signature is not None and not _has(own, path.root):
        raise MappingFailed(f"`{path.root}` is a local variable of {resumed[0]}")
    for step in steps[at : steps.index(inner) + 1]:
        _check_assigned(step, path.root, resumed[0])
    return at, path


def _has(step: _Level, root: str) -> bool:
    return step.signature is not None and root in step.signature.names


def _check_assigned(step: _Level, root: str, function: str | None = None) -> None:
    if root in (step.row.assigned or ()):
        raise MappingFailed(f"`{root}` is assigned again in {function or step.where} before that")


def _bind(callee: _Level, caller: _Level, path: Path) -> tuple[tuple[Argument, ...], str]:
    """The arguments of the caller's call that a value of the called function can be, and the text of that call."""
    passed = follow_torch_frames(callee.torch_frames)
    # torch's logs leave out the innermost frames: torch's own frames show that none of the user's is missing.
    is_next = caller.signature is not None or bool(callee.torch_frames)
    call = find_call(caller.row.call, caller.row.code, callee.function, is_next)
    if isinstance(call, ObjectUse):
        if callee.signature is not None and callee.signature.plain[:1] == (path.root,):
            return (Argument(call.value, path.steps),), call.text
        raise MappingFailed(f"`{shorten(call.text)}` names no argument")
    if callee.signature is None:
        return _bind_by_name(path, call, callee.function, passed), call.text
    arguments = bind_path(path, callee.signature, call, callee.function, passed.is_object)
    if passed.members and arguments[0].node is call.node.func:
        arguments = (Argument(call.node.func, (*passed.members, *arguments[0].rest)),)
    return arguments, call.text


def _bind_by_name(path: Path, call: ParsedCall, function: str, passed: Passed) -> tuple[Argument, ...]:
    """The argument of a function whose parameters a log does not have: a keyword, the object, or the same name."""
    if path.root in ("self", "args", "kwargs"):
        parameters = {"self": ["self", "*_"], "args": ["*args"], "kwargs": ["**kwargs"]}[path.root]
        return bind_path(path, read_signature(parameters), call, function, passed.is_object)
    for keyword in call.node.keywords:
        if keyword.arg == path.root:
            return (Argument(keyword.value, path.steps),)
    arguments = [*call.node.args, *(keyword.value for keyword in call.node.keywords)]
    same = [node for node in arguments if isinstance(node, ast.Name) and node.id == path.root]
    is_only = len(arguments) == 1 and bool(call.node.args) and path.tensor_property is not None
    if same or (is_only and call.is_whole and not isinstance(arguments[0], ast.Starred)):
        return (Argument((same or arguments)[0], path.steps),)
    raise MappingFailed(f"the parameters of {function} are not recorded, and `{call.shown}` has no `{path.root}`")


def _continue(step: _Level, argument: Argument, text: str) -> Path:
    """The path of an argument in a function between the call site and the compiled one."""
    node, rest = open_displays(argument)
    path = read_path(node)
    if path is None:
        raise MappingFailed(f"`{shorten(get_text(node, text))}` is computed in {step.where}")
    if step.signature is not None and path.root not in step.signature.names:
        raise MappingFailed(f"`{path.root}` is no parameter of {step.where}")
    if parse_resumed(step.row.function) is None:
        _check_assigned(step, path.root)
    return path.extend(rest)


def _write(step: _Level, argument: Argument, text: str) -> NamedValue:
    """The name of an argument of the user's own call."""
    node, rest = open_displays(argument)
    written = get_text(node, text)
    if isinstance(node, ast.Constant):
        raise MappingFailed(f"the call passes {shorten(written)}, which has no name")
    is_primary = isinstance(node, _PRIMARY) or not rest
    path = Path(written if is_primary else f"({written})", steps=rest)
    return NamedValue((path,), step.row.function in _INSIDE)


def _find_base(path: Path) -> Path:
    """The value that a property, or a function such as `len`, is of."""
    inner = next((at for at, step in enumerate(path.steps) if step.kind == "function"), len(path.steps))
    return Path(path.root, path.scope, path.steps[:inner]).owner


def _is_duplicable(base: Path) -> bool:
    expression = parse_expression(base.code, False)
    if expression is None or (isinstance(expression.node, ast.Attribute) and expression.node.attr in _MADE_EACH_TIME):
        return False
    return not any(isinstance(node, _EVALUATED_ONCE) for node in ast.walk(expression.node))
