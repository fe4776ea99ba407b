"""Where the user's own code calls into compiled code, and what a guarded value is called there."""

from __future__ import annotations

import ast
import builtins
import contextlib
import io
import itertools
import re
import tokenize
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from operator import attrgetter
from typing import NamedTuple, TypedDict

from ...decode.call_stacks import OwnCode, find_torch_path, is_torch_file
from ...decode.guards.path import Expression, Path, Step, list_sources, parse_expression
from ...events import Compile, GraphBreak, Recompile, RefusedCall, Rows, StackFrame
from ...formatting import format_line, format_place, is_module_wrapper, parse_resumed
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
    bound inside the statement. Without a call site it has no name.
    """

    site: CallSite | None = None
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

    @property
    def key(self) -> str | None:
        """A text that is equal for guards on one expression at one line of the user's code; None without a name."""
        if self.site is None or self.expression is None:
            return None
        return f"{self.site.file}:{self.site.line}:{self.expression}"

    @property
    def position(self) -> int | None:
        """Where the user's call has the value: the offset in its text; None if it is not there."""
        if self.site is None or not self.site.call or self.base is None:
            return None
        found = re.search(rf"(?<![\w.]){re.escape(self.base)}(?!\w)", self.site.call)
        return found.start() if found else None

    @cached_property
    def is_duplicable(self) -> bool:
        """False if what is passed has to be evaluated once only, or has no value before the statement."""
        for path in self.paths:
            found = parse_expression(_find_base(path).code, False)
            if found is None or (isinstance(found.node, ast.Attribute) and found.node.attr in _MADE_EACH_TIME):
                return False
            if any(isinstance(node, _EVALUATED_ONCE) for node in ast.walk(found.node)):
                return False
        return bool(self.paths) and not self.is_inside


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
        return ", ".join(map(attrgetter("code"), self.paths)) or None

    @cached_property
    def value(self) -> str | None:
        """The same without a tensor's property: `ids`."""
        return ", ".join(map(attrgetter("owner.code"), self.paths)) or None


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
        self._calls: dict[str | None, _CallPath] = {}
        self._names: dict[tuple[str | None, str], NamedValue] = {}

    def find(self, compile_key: str | None) -> CallSite | None:
        """The line of the user's own code that calls into compiled code; None if no such frame is recorded."""
        return self._read_call(self._stacks.find(compile_key)).site

    def name(self, compile_key: str | None, source: str | None) -> NamedValue:
        """What a value of the compiled function is called at its call site; several sources are joined by commas."""
        stack, source = self._stacks.find(compile_key), source or ""
        if (stack, source) not in self._names:
            call = self._read_call(stack)
            named, reason = NamedValue(call.site), call.reason
            try:
                for value in list_sources(source) if reason is None else ():
                    if not value.root.isidentifier() or value.steps[:1] == (Step("call"),):
                        raise MappingFailed(f"`{format_line(value.text, 60)}` is not one value")
                    one = _follow(call.levels, value)
                    named = replace(named, paths=named.paths + one.paths, is_inside=named.is_inside or one.is_inside)
            except MappingFailed as error:
                reason = str(error)
            self._names[stack, source] = named if reason is None else NamedValue(call.site, reason=reason)
        return self._names[stack, source]

    def find_names(
        self, rows: Iterable[Recompile], members: Sequence[Recompile], others: Iterable[SizeAt]
    ) -> UserNames:
        """The names of a cause by its recompiles. `members` are recompiles by all values that are the same change, and
        `others` the sizes of guards that failed beside it, each with its function.
        """
        found, reason, first = [*rows][:_MAX_ROWS], None, None
        for row in found:
            value = self.name(row.compile_key, row.guard_source)
            if value.expression is not None:
                is_whole = all(self.name(one.compile_key, one.guard_source).base for one in members)
                # In the user's own function, its parameter reads better than a call such as `torch.randn(size, 16)`.
                is_own = self._own.is_own(row.file, row.function) and "(" in (value.base or "")
                paths = list_sources(row.guard_source or "") if is_own else value.paths
                return UserNames(value.site, paths, None, self._list_sites(found, {*others}), is_whole)
            if value.site is not None:
                first, reason = first or value.site, reason or value.reason
        return UserNames(first, (), reason)

    def _list_sites(self, rows: list[Recompile], others: set[SizeAt]) -> tuple[NamedSite, ...]:
        """The lines with the names of the values there. A value is one of the function that it was guarded in."""
        sources = others | {(get_place(row), row.guard_source or "") for row in rows}
        found: dict[tuple[str, int], NamedSite] = {}
        for place, key in ((get_place(row), key) for row in rows for key in (row.closest_compile_key, row.compile_key)):
            site = self.find(key)
            if site is None:
                continue
            known = found.get((site.file, site.line)) or NamedSite(site)
            own = frozenset(source for at, source in sources if at == place and source) - known.sources
            names = dict(known.names)
            for source in own:
                value = self.name(key, source)
                if value.base is not None and value.is_duplicable:
                    names[source] = value.base
            found[site.file, site.line] = replace(known, names=names, sources=known.sources | own)
        return tuple(found.values())

    def _read_call(self, stack: str | None) -> _CallPath:
        """The call that a stack is of, with its steps; each is read once."""
        if stack not in self._calls:
            path = tuple(reversed([*self._stacks.walk(stack)]))
            at = self._find_place(path)
            if at is None:
                reason = "no frame of your own code calls it" if path else "its call stack is not recorded"
                self._calls[stack] = _CallPath(reason=reason)
            else:
                self._calls[stack] = _CallPath(_make_site(path, at), _read_levels(path[at:]))
        return self._calls[stack]

    def _find_place(self, path: Sequence[StackFrame]) -> int | None:
        """The place of the call site in a stack, outermost frame first: the innermost frame of the user's that has the
        arguments.
        """
        end = find_compiled_call(path)
        if end is None:
            # The code after a graph break is called by the function itself.
            end = len(path) - 1
            while end > 0 and (resumed := parse_resumed(path[end].function)) is not None:
                whole = resumed[0], path[end].file
                inside = [at for at in range(end) if (path[at].function, path[at].file) == whole]
                end = inside[-1] if inside else end - 1
        outside = range(max(end, 0))
        own = [at for at in outside if self._own.is_own(path[at].file, path[at].function, path[at].code)]
        named = [at for at in outside if self._own.matches(path[at].file)] if self._own.is_named else []
        places = [at for at in named or own if path[at].line is not None]
        # A decorator that only passes the arguments on was called by another one.
        for outer, at in reversed(list(itertools.pairwise(places))):
            if not _passes_on(path[at]) or not all(is_torch_file(row.file or "") for row in path[outer + 1 : at]):
                return at
        return min(places, default=None)


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


def _list_texts(value: object) -> list[str]:
    return [text for text in value if isinstance(text, str)] if isinstance(value, (list, tuple)) else []


def _passes_on(row: StackFrame) -> bool:
    """True if a function only passes on its own `*args` and `**kwargs`, as decorators do."""
    if row.call is None or row.parameters is None or row.assigned:
        return False
    try:
        call = find_call(row.call, None, "")
    except MappingFailed:
        return False
    if not isinstance(call, ParsedCall):
        return False
    own, node = read_signature(row.parameters).names, call.node
    starred = [argument.value for argument in node.args if isinstance(argument, ast.Starred)]
    plain = [argument for argument in node.args if not isinstance(argument, ast.Starred)]
    passed = [*starred, *plain, *(keyword.value for keyword in node.keywords)]
    is_variadic = bool(starred) or any(keyword.arg is None for keyword in node.keywords)
    return is_variadic and all(isinstance(argument, ast.Name) and argument.id in own for argument in passed)


# From the compiled function to the call site


class Passed(NamedTuple):
    """What torch's frames do to a call: is an object called, and which attribute of it is the object of the method?"""

    is_object: bool = False
    members: tuple[Step, ...] = ()


class _Level(NamedTuple):
    """A frame outside torch, and how the one around it calls it.

    `signature` has the parameters of its function, `call` is the code of the caller that runs it, and `passed` what
    torch's frames between do to that call. Without a call, `reason` says why.
    """

    row: StackFrame
    signature: Signature | None
    call: ParsedCall | ObjectUse | None = None
    passed: Passed = Passed()
    reason: str = ""

    @property
    def function(self) -> str:
        return self.row.function or ""

    @property
    def where(self) -> str:
        return f"{self.row.function} ({format_place(self.row.file, self.row.line)})"

    def has(self, root: str) -> bool:
        """True if its function is known to have this parameter."""
        return self.signature is not None and root in self.signature.names

    def is_called(self, root: str) -> bool:
        """True for the variable in which torch's wrapper has the module of torch.nn that it calls."""
        return root == "fn" and is_module_wrapper(self.row.function, self.row.file)

    def check_assigned(self, root: str, function: str | None = None) -> None:
        """MappingFailed if a name has another value than the parameter had."""
        if root in (self.row.assigned or ()):
            raise MappingFailed(f"`{root}` is assigned again in {function or self.where} before that")


class _CallPath(NamedTuple):
    """A call into compiled code: its line, and the levels from there, the first one, to the compiled function, the
    last one. Without a call site, `reason` says why.
    """

    site: CallSite | None = None
    levels: tuple[_Level, ...] = ()
    reason: str | None = None


def _make_site(path: Sequence[StackFrame], at: int) -> CallSite:
    """The call site at a place in a stack, in the function around a comprehension."""
    row, outer = path[at], at
    while outer > 0 and path[outer].function in _COMPREHENSIONS and path[outer - 1].file == row.file:
        outer -= 1
    return CallSite(row.file or "", row.line or 0, path[outer].function, row.code, row.call)


def _read_levels(path: Sequence[StackFrame]) -> tuple[_Level, ...]:
    """The levels of the frames from a call site to the compiled one, each with the call of it."""
    levels: list[_Level] = []
    between: list[StackFrame] = []
    for row in path:
        if row is not path[-1] and is_torch_file(row.file or ""):
            between.append(row)
            continue
        level = _Level(row, None if row.parameters is None else read_signature(row.parameters))
        if levels:
            caller = levels[-1]
            # torch's logs leave out the innermost frames: torch's own frames show that none of the user's is missing.
            is_next = caller.signature is not None or bool(between)
            try:
                passed = follow_torch_frames(between)
                call = find_call(caller.row.call, caller.row.code, level.function, is_next)
                level = level._replace(call=call, passed=passed)
            except MappingFailed as error:
                level = level._replace(reason=str(error))
        levels.append(level)
        between = []
    return tuple(levels)


def _follow(levels: Sequence[_Level], path: Path) -> NamedValue:
    """Follow a value from the compiled function, the last level, to the call site, the first one. MappingFailed if it
    has no name there.
    """
    while True:
        levels = _leave_resumed(levels, path.root)
        callee, outer = levels[-1], levels[:-1]
        if not outer:
            return NamedValue(paths=(path,))
        # A log has no parameters: what no argument is called is found out by what calls it.
        if callee.signature is not None and not callee.has(path.root) and not callee.is_called(path.root):
            # A global, or a variable of the function around, has the same name in the whole file.
            if callee.row.file != levels[0].row.file and path.root not in _MODULES:
                raise MappingFailed(f"`{path.root}` is a global of {format_place(callee.row.file, None)}")
            return NamedValue(paths=(path,))
        arguments, text = _bind(callee, path)
        if len(outer) == 1:
            if len(arguments) > 1:
                raise MappingFailed(f"`{path.root}` is one of several arguments of `{format_line(text, 60)}`")
            return _name_argument(outer[0], arguments[0], text)
        for argument in arguments[:-1]:
            with contextlib.suppress(MappingFailed):
                return _follow(outer, _continue(outer[-1], argument, text))
        levels, path = outer, _continue(outer[-1], arguments[-1], text)


def _leave_resumed(levels: Sequence[_Level], root: str) -> Sequence[_Level]:
    """The levels to the function itself, where the value is one of the code after a graph break in it."""
    resumed = parse_resumed(levels[-1].row.function)
    if resumed is None:
        return levels
    if root.startswith(_MADE_UP):
        raise MappingFailed(f"`{root}` is a value of the code before the graph break; it has no name")
    at = len(levels) - 1
    while at > 0 and parse_resumed(levels[at].row.function) is not None:
        at -= 1
    own = levels[at]
    if own.row.function != resumed[0]:
        raise MappingFailed(f"the call of {resumed[0]} is part of the compiled code of {own.where}")
    if levels[-1].has(root) and own.signature is not None and not own.has(root):
        raise MappingFailed(f"`{root}` is a local variable of {resumed[0]}")
    for level in levels[at:]:
        level.check_assigned(root, resumed[0])
    return levels[: at + 1]


def _name_argument(caller: _Level, argument: Argument, text: str) -> NamedValue:
    """The name of an argument at the call site, whose call is `text`."""
    node, rest = open_displays(argument)
    written = get_text(node, text)
    if isinstance(node, ast.Constant):
        raise MappingFailed(f"the call passes {format_line(written, 60)}, which has no name")
    is_primary = isinstance(node, _PRIMARY) or not rest
    path = Path(written if is_primary else f"({written})", steps=rest)
    return NamedValue(paths=(path,), is_inside=caller.row.function in _INSIDE)


def _bind(callee: _Level, path: Path) -> tuple[tuple[Argument, ...], str]:
    """The arguments of the call of a function that a value of it can be, and the text of that call."""
    call, passed = callee.call, callee.passed
    if call is None:
        raise MappingFailed(callee.reason)
    if isinstance(call, ObjectUse):
        parameters = () if callee.signature is None else callee.signature.plain
        if path.root not in parameters[: len(call.operands)]:
            raise MappingFailed(f"`{format_line(call.text, 60)}` names no argument")
        return (Argument(call.operands[parameters.index(path.root)], path.steps),), call.text
    if callee.is_called(path.root):
        arguments: tuple[Argument, ...] = (_find_called(path.steps, call, passed),)
    elif callee.signature is None:
        arguments = _bind_by_name(path, call, callee.function, passed)
    else:
        arguments = bind_path(path, callee.signature, call, callee.function, passed.is_object)
    if passed.members and arguments[0].node is call.node.func:
        arguments = (Argument(call.node.func, (*passed.members, *arguments[0].rest)),)
    return arguments, call.text


def _find_called(steps: tuple[Step, ...], call: ParsedCall, passed: Passed) -> Argument:
    """A value of what a call runs, or of the object whose method that is."""
    func = _find_function(call.node.func)
    if steps[:1] != (Step("attr", "__self__"),):
        return Argument(func, steps)
    if isinstance(func, ast.Attribute) and func.attr in _OF_CALLED_OBJECTS:
        func = func.value
    elif not passed.is_object:
        return Argument(func, steps)
    return Argument(func, steps[1:])


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
        raise MappingFailed(f"`{format_line(get_text(node, text), 60)}` is computed in {step.where}")
    if step.signature is not None and path.root not in step.signature.names:
        raise MappingFailed(f"`{path.root}` is no parameter of {step.where}")
    if parse_resumed(step.row.function) is None:
        step.check_assigned(path.root)
    return path.extend(rest)


def _find_base(path: Path) -> Path:
    """The value that a property, or a function such as `len`, is of."""
    inner = next((at for at, step in enumerate(path.steps) if step.kind == "function"), len(path.steps))
    return Path(path.root, path.scope, path.steps[:inner]).owner


# A call: its text as a syntax tree

#: Statements whose first line is no statement of its own, and what makes it one.
_BEGINNINGS = ("", "if 1: pass\n", "try: pass\n")
#: Names of the methods of operators, and of those that the object on the right has: `__radd__`.
_OF_OPERATORS, _REFLECTED = re.compile(r"__\w+__"), re.compile(r"__r(?!shift__)")
_CLOSING = {"(": ")", "[": "]", "{": "}"}
#: Built-in functions that call what they are given, or run a generator that they are given.
_CALLING = frozenset(
    {"all", "any", "bytes", "dict", "enumerate", "filter", "frozenset", "list", "map", "max", "min", "next", "reduce"}
    | {"reversed", "set", "sorted", "sum", "tuple", "zip"}
)


class MappingFailed(Exception):
    """A value has no name at the call; the text says why."""


class ParsedCall(NamedTuple):
    """A call, in the text that it was parsed from. If not `is_whole`, more arguments can follow."""

    node: ast.Call
    text: str
    is_whole: bool = True

    @property
    def shown(self) -> str:
        """The call on one line, for messages."""
        return format_line(get_text(self.node, self.text), 60)


class ObjectUse(NamedTuple):
    """Code that runs a method without a call of it: an attribute that is a property, an item, an operator.

    `operands` are the object and the method's arguments.
    """

    operands: tuple[ast.expr, ...]
    text: str


def get_text(node: ast.AST, text: str) -> str:
    """The text of a node as it was written; on one line."""
    segment = ast.get_source_segment(text, node)
    return ast.unparse(node) if segment is None or "\n" in segment else segment


def find_call(call: str | None, code: str | None, function: str, is_next: bool = True) -> ParsedCall | ObjectUse:
    """The call that runs `function`: `call` is the text of what runs in the frame, or else it is looked for in `code`,
    the text of one line: the call of that name, or else the only one that can. Unless `is_next`, frames between can be
    missing, so that only a call of that name is certain. MappingFailed if there is none, or it is not certain.
    """
    line = call if call is not None else code
    if line is None:
        raise MappingFailed("the text of the call is not recorded")
    parsed = parse_statement(line.strip())
    if parsed is None:
        raise MappingFailed(f"`{format_line(line, 60)}` can't be parsed")
    tree, text, is_whole = parsed
    if call is not None:
        return _read_running(tree, text, is_whole, function)
    shown = format_line(line, 60)
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    same = [node for node in calls if get_name(node.func) == function]
    found = same or [node for node in calls if _can_run_user_code(node)]
    if not found:
        passing = [node for node in calls if get_name(node.func) in _CALLING]
        if passing:
            _enter_builtin(passing[0], text, function)
        raise MappingFailed(f"`{shown}` has no call")
    if not same and not is_next:
        raise MappingFailed(f"`{shown}` does not call {function}, and a log leaves out the innermost frames")
    if len(found) > 1:
        raise MappingFailed(f"`{shown}` has several calls")
    return ParsedCall(found[0], text, is_whole)


def _read_running(tree: ast.Module, text: str, is_whole: bool, function: str) -> ParsedCall | ObjectUse:
    """What the text of a call, an attribute or an item runs; MappingFailed for other code."""
    node = _find_expression(tree)
    while isinstance(node, (ast.Await, ast.YieldFrom)):
        node = node.value
    if operands := _list_operands(node, function):
        return ObjectUse(operands, text)
    if not isinstance(node, ast.Call):
        raise MappingFailed(f"`{format_line(text, 60)}` is no call")
    made = node.func
    if isinstance(made, ast.Call) and get_name(made.func) == "partial" and made.args:
        # `partial(f, x)(y)` is the call `f(x, y)`.
        args, keywords = [*made.args[1:], *node.args], [*made.keywords, *node.keywords]
        node = ast.copy_location(ast.Call(func=made.args[0], args=args, keywords=keywords), node)
    return ParsedCall(_enter_builtin(node, text, function), text, is_whole)


def _list_operands(node: ast.expr | None, function: str) -> tuple[ast.expr, ...]:
    """The object whose method an attribute, an item or an operator runs, and the method's arguments; else nothing."""
    match node:
        case ast.Attribute(value):
            return (value,)
        case ast.Subscript(value, index):
            has_slice = any(isinstance(part, ast.Slice) for part in ast.walk(index))
            return (value,) if has_slice else (value, index)
        case ast.BinOp(left, _, right) if _OF_OPERATORS.fullmatch(function):
            return (right, left) if _REFLECTED.match(function) else (left, right)
        case ast.UnaryOp(_, operand) if _OF_OPERATORS.fullmatch(function):
            return (operand,)
        case ast.Compare(left, [ast.In() | ast.NotIn()], [right]) if function == "__contains__":
            return right, left
    return ()


def _find_expression(tree: ast.Module) -> ast.expr | None:
    """The expression that a statement is about: that of `for x in <it>:`, of `with <it>:`, of `y = <it>`; `y + x` of
    `y += x`.
    """
    statement = tree.body[-1]
    if isinstance(statement, ast.Try):
        statement = statement.handlers[0]  # type: ignore[assignment]
    if isinstance(statement, (ast.For, ast.AsyncFor)):
        return statement.iter
    if isinstance(statement, (ast.With, ast.AsyncWith)):
        return statement.items[0].context_expr
    if isinstance(statement, ast.AugAssign):
        return ast.BinOp(statement.target, statement.op, statement.value)
    value = getattr(statement, "value", None)
    return value if isinstance(value, ast.expr) else None


def _enter_builtin(node: ast.Call, text: str, function: str) -> ast.Call:
    """In `list(f(x))`, what runs is `list`, which runs the generator `f`. `map(f, xs)` gives the arguments no names."""
    name = get_name(node.func)
    if name not in _CALLING or name == function:
        return node
    inner = [child for child in ast.walk(node) if isinstance(child, ast.Call) and child is not node]
    for child in inner:
        if get_name(child.func) == function:
            return child
    passing = next((child for child in (*inner, node) if get_name(child.func) in ("map", "filter", "starmap")), node)
    items = ", ".join(f"`{format_line(get_text(argument, text), 40)}`" for argument in passing.args[1:])
    of = f"the items of {items}" if items else "its arguments"
    raise MappingFailed(f"`{get_name(passing.func)}` passes {of}, which have no name there")


def _can_run_user_code(node: ast.Call) -> bool:
    """False for built-in functions, for torch's, and for methods of a result, such as `model(x).sum()`."""
    func: ast.expr = node.func
    while isinstance(func, (ast.Attribute, ast.Subscript)):
        func = func.value
    if isinstance(func, ast.Name):
        is_builtin = isinstance(node.func, ast.Name) and hasattr(builtins, func.id)
        return not is_builtin and func.id not in ("torch", "np", "numpy", "time", "logging", "logger", "F")
    return isinstance(node.func, (ast.Name, ast.Lambda))


def find_result_name(code: str | None) -> str | None:
    """The variable that gets the result of a line's only call: `width = box[2].item()` is "width"; None for others."""
    tree = _parse((code or "").strip())
    body = [] if tree is None else tree.body
    if len(body) != 1 or not isinstance(body[0], ast.Assign) or not isinstance(body[0].value, ast.Call):
        return None
    target, calls = body[0].targets[0], [node for node in ast.walk(body[0]) if isinstance(node, ast.Call)]
    return target.id if isinstance(target, ast.Name) and len(calls) == 1 else None


def get_name(func: ast.expr) -> str | None:
    """The last name of what is called: `self.model.step` is "step"."""
    if isinstance(func, ast.Name):
        return func.id
    return func.attr if isinstance(func, ast.Attribute) else None


def parse_statement(text: str) -> tuple[ast.Module, str, bool] | None:
    """The tree of a statement, or of its first line: the text that was parsed, and true if nothing was added to it
    in place of lines that are missing; None if it is no Python.
    """
    waiting: list[str] = []
    with contextlib.suppress(tokenize.TokenError, SyntaxError):
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.string in _CLOSING:
                waiting.append(_CLOSING[token.string])
            elif waiting and token.string == waiting[-1]:
                waiting.pop()
    # Of a first line: the brackets that close those that are open at its end, and the body that its statement lacks.
    is_block = bool(waiting) and text.split(" ", 1)[0] in ("for", "with", "if", "while", "elif", "async")
    closing = "".join(reversed(waiting)) + (": pass" if is_block else "")
    for is_whole, ending in ((True, ""), (True, " pass"), (False, closing)):
        for beginning in _BEGINNINGS:
            whole = beginning + text + ending
            if (tree := _parse(whole)) is not None and tree.body:
                return tree, whole, is_whole
    return None


def _parse(text: str) -> ast.Module | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text)
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return None


# The argument that each parameter gets

#: Names that the first parameter of a method has.
_OBJECTS = ("self", "cls")
#: Functions that are also called by calling their object.
_OF_CALLED_OBJECTS = ("forward", "__call__")


class Argument(NamedTuple):
    """An expression of a call, and the steps from it to the value."""

    node: ast.expr
    rest: tuple[Step, ...]


class Signature(NamedTuple):
    """The parameters of a function, by how they can be passed."""

    plain: tuple[str, ...]
    star: str | None
    keyword_only: tuple[str, ...]
    double_star: str | None

    @property
    def names(self) -> set[str]:
        return {*self.plain, *self.keyword_only, *filter(None, (self.star, self.double_star))}

    @property
    def has_object(self) -> bool:
        """True if the first parameter is the object of a method."""
        return bool(self.plain) and self.plain[0] in _OBJECTS


def read_signature(parameters: Sequence[str]) -> Signature:
    """Parameters as a stack frame has them: `x`, `*args`, `k=` for one that is passed by keyword only, `**kwargs`."""
    plain = tuple(name for name in parameters if name.isidentifier())
    star = next((name[1:] for name in parameters if name.startswith("*") and name[1:].isidentifier()), None)
    double = next((name[2:] for name in parameters if name.startswith("**")), None)
    return Signature(plain, star, tuple(name[:-1] for name in parameters if name.endswith("=")), double)


def bind_path(
    path: Path, signature: Signature, call: ParsedCall, function: str, is_object: bool
) -> tuple[Argument, ...]:
    """The argument that a value of the called function came in by; two, if it is in `*args` or in `**kwargs`.

    `is_object`: torch's module calls are in between, so what is called is the object itself. MappingFailed if no
    argument can be named.
    """
    shift, keywords = _count_implicit(signature, call.node, function, is_object), call.node.keywords
    if path.root in signature.plain:
        position = signature.plain.index(path.root) - shift
        if position < 0:
            return (Argument(find_object(call, function, is_object), path.steps),)
        names = {keyword.arg for keyword in keywords}
        found = None if path.root in names else _find_positional(position, call)
        if found is not None:
            positional = Argument(found.node, found.rest + path.steps)
            # An item of `*args` may not exist: then the value is in `**kwargs`.
            may_be_keyword = bool(found.rest) and None in names
            return (positional, _find_keyword(path.root, path.steps, call)) if may_be_keyword else (positional,)
    if path.root == signature.star:
        return (_find_in_star(path, len(signature.plain) - shift, call),)
    if path.root == signature.double_star:
        key = _get_key(path.steps)
        if isinstance(key, str):
            return (_find_keyword(key, path.steps[1:], call),)
        if len(keywords) != 1 or keywords[0].arg is not None:
            raise MappingFailed(f"`{path.text}` is all keyword arguments of `{call.shown}`")
        return (Argument(keywords[0].value, path.steps),)
    return (_find_keyword(path.root, path.steps, call),)


def find_object(call: ParsedCall, function: str, is_object: bool) -> ast.expr:
    """The expression of the object whose method a call runs."""
    func = _find_function(call.node.func)
    is_called = is_object or (function in _OF_CALLED_OBJECTS and get_name(func) != function)
    if is_called:
        return func
    if isinstance(func, ast.Attribute):
        return func.value
    raise MappingFailed(f"`{call.shown}` does not name the object of {function}")


def _find_function(func: ast.expr) -> ast.expr:
    """What is called: `optimizer.step` of `torch.compile(optimizer.step)()`."""
    if isinstance(func, ast.Call) and func.args and "compile" in (get_name(func.func) or ""):
        return func.args[0]
    return func


def _count_implicit(signature: Signature, call: ast.Call, function: str, is_object: bool) -> int:
    """1 if the first parameter is the object and no argument of the call, else 0."""
    if is_object:
        return 1 if signature.has_object or (signature.plain and function in _OF_CALLED_OBJECTS) else 0
    if not signature.has_object:
        return 1 if signature.plain and function == "__call__" else 0
    first = call.args[0] if call.args else None
    if isinstance(first, ast.Name) and first.id in _OBJECTS:
        return 0
    is_too_many = signature.star is None and len(call.args) > len(signature.plain) - 1
    return 0 if is_too_many and not any(isinstance(argument, ast.Starred) for argument in call.args) else 1


def _find_positional(position: int, call: ParsedCall) -> Argument | None:
    """The argument at a position; None if there are fewer."""
    arguments = list(_open_starred(call.node.args))
    for place, argument in enumerate(arguments):
        if isinstance(argument, ast.Starred):
            if place + 1 < len(arguments):
                raise MappingFailed(f"`{call.shown}` has arguments after `*{get_text(argument.value, call.text)}`")
            return Argument(argument.value, (Step("item", position - place),))
        if place == position:
            return Argument(argument, ())
    return None


def _open_starred(arguments: Iterable[ast.expr]) -> Iterator[ast.expr]:
    """The arguments with `x, y` in place of `*(x, y)`."""
    for argument in arguments:
        if isinstance(argument, ast.Starred) and isinstance(argument.value, (ast.Tuple, ast.List)):
            yield from _open_starred(argument.value.elts)
        else:
            yield argument


def _find_in_star(path: Path, before: int, call: ParsedCall) -> Argument:
    """The argument of `args[1]`; of `args` itself only if the call passes `*args` and nothing else for it."""
    key = _get_key(path.steps)
    if not isinstance(key, int) or key < 0:
        starred = call.node.args[before:]
        if len(starred) == 1 and isinstance(starred[0], ast.Starred):
            return Argument(starred[0].value, path.steps)
        raise MappingFailed(f"`{path.text}` is all further arguments of `{call.shown}`")
    found = _find_positional(before + key, call)
    method = _find_function(call.node.func)
    if found is None and key == 0 and isinstance(method, ast.Attribute):
        return Argument(method.value, path.steps[1:])  # A wrapper of a method gets its object as well.
    if found is None:
        raise MappingFailed(f"`{call.shown}` has no argument for `{path.text}`")
    return Argument(found.node, found.rest + path.steps[1:])


def _get_key(steps: tuple[Step, ...]) -> str | int | None:
    """The key of the first step, if that is an item by a text or a whole number."""
    key = steps[0].value if steps and steps[0].kind == "item" else None
    return key if isinstance(key, (str, int)) and not isinstance(key, bool) else None


def _find_keyword(name: str, rest: tuple[Step, ...], call: ParsedCall) -> Argument:
    for keyword in call.node.keywords:
        if keyword.arg == name:
            return Argument(keyword.value, rest)
    dicts = [keyword.value for keyword in call.node.keywords if keyword.arg is None]
    if len(dicts) == 1:
        return Argument(dicts[0], (Step("item", name), *rest))
    if dicts:
        raise MappingFailed(f"several dicts of `{call.shown}` can have `{name}`")
    if not call.is_whole:
        raise MappingFailed(f"`{name}` is not in the one line of the call that is recorded")
    raise MappingFailed(f"`{call.shown}` does not pass `{name}`: it has its default, or a partial function gives it")


def open_displays(argument: Argument) -> Argument:
    """Replace an item of a dict, tuple or list that is written in the call by the expression: `{"x": ids}["x"]`."""
    node, rest = argument
    while (key := _get_key(rest)) is not None:
        inner = _find_item(node, key)
        if inner is None:
            break
        node, rest = inner, rest[1:]
    return Argument(node, rest)


def _find_item(node: ast.expr, key: str | int) -> ast.expr | None:
    if isinstance(node, (ast.Tuple, ast.List)) and isinstance(key, int) and 0 <= key < len(node.elts):
        before = node.elts[: key + 1]
        return None if any(isinstance(element, ast.Starred) for element in before) else before[-1]
    if isinstance(node, ast.Dict):
        found = [
            v for k, v in zip(node.keys, node.values, strict=True) if isinstance(k, ast.Constant) and k.value == key
        ]
        return found[-1] if found else None
    if isinstance(node, ast.Call) and get_name(node.func) == "dict" and not node.args:
        return next((keyword.value for keyword in node.keywords if keyword.arg == key), None)
    return None


def read_path(node: ast.expr) -> Path | None:
    """The path that an expression is: names, attributes and items with constant keys; None if it computes something."""
    path = Expression(node, "", (), has_scopes=False).read_path(node)
    if path is None or not all(step.kind in ("attr", "item") and type(step.value) in (str, int) for step in path.steps):
        return None
    return path


# Torch's frames between a call and the function that it runs, most of which pass their arguments through

#: Functions of `eval_frame.py` that begin a compiled call. Until torch 2.9, `_fn` also ended one (`disable`).
_COMPILED, _ANY_CALL = ("compile_wrapper", "__call__"), "_fn"

#: File and function -> the object that it calls, as an attribute of the one that was called; None for the same object.
_CALLED_OBJECTS = {
    ("nn/modules/module.py", "__call__"): None,
    ("nn/modules/module.py", "_wrapped_call_impl"): None,
    ("nn/modules/module.py", "_call_impl"): None,
    ("nn/modules/module.py", "inner"): None,
    ("nn/modules/module.py", "_slow_forward"): None,
    ("_dynamo/eval_frame.py", "__call__"): None,
    ("nn/parallel/distributed.py", "forward"): None,
    ("nn/parallel/distributed.py", "_run_ddp_forward"): "module",
    ("distributed/fsdp/fully_sharded_data_parallel.py", "forward"): "_fsdp_wrapped_module",
    ("distributed/algorithms/_checkpoint/checkpoint_wrapper.py", "forward"): "_checkpoint_wrapped_module",
}
#: The wrappers of context managers as decorators are here; torch 2.15 names them after the context manager.
_CONTEXTS = "utils/_contextlib.py"
#: Functions of that file that are no wrapper: they return one, or run a generator.
_OWN_OF_CONTEXTS = {"__call__", "__new__", "clone", "context_decorator", "_wrap_generator", "generator_context"}
#: Functions that call a function with the arguments that they got.
_PASSING_ON = {
    ("_dynamo/eval_frame.py", "compile_wrapper"),
    ("_dynamo/eval_frame.py", "_fn"),
    ("_dynamo/eval_frame.py", "callback_fn"),
    ("_dynamo/eval_frame.py", "fail_callback"),
    ("_dynamo/external_utils.py", "inner"),
    ("_dynamo/external_utils.py", "nonrecursive_disable_wrapper"),
    ("_dynamo/decorators.py", "wrapper"),
    ("_dynamo/decorators.py", "inner"),
    ("_compile.py", "inner"),
    ("autograd/grad_mode.py", "decorate_context"),
    ("amp/autocast_mode.py", "decorate_autocast"),
    ("amp/autocast_mode.py", "decorate_fwd"),
    ("optim/optimizer.py", "wrapper"),
    ("optim/optimizer.py", "_use_grad"),
    ("optim/lr_scheduler.py", "wrapper"),
    ("distributed/elastic/multiprocessing/errors/__init__.py", "wrapper"),
}


def find_compiled_call(frames: Sequence[StackFrame]) -> int | None:
    """The place of the outermost frame in which torch begins a compiled call; None if a log has left it out."""
    places = [at for at, frame in enumerate(frames) if find_torch_path(frame.file or "") == "_dynamo/eval_frame.py"]
    certain = [at for at in places if frames[at].function in _COMPILED]
    possible = [at for at in places if frames[at].function == _ANY_CALL]
    return min(certain or possible, default=None)


def follow_torch_frames(frames: Iterable[StackFrame]) -> Passed:
    """What the frames between a call and its function do. MappingFailed if they make arguments of their own."""
    is_object, members = False, list[Step]()
    for frame in frames:
        path = find_torch_path(frame.file or "")
        place = (path or "", frame.function or "")
        if place in _CALLED_OBJECTS:
            is_object = True
            if (attribute := _CALLED_OBJECTS[place]) is not None:
                members.append(Step("attr", attribute))
        elif place not in _PASSING_ON and (path != _CONTEXTS or frame.function in _OWN_OF_CONTEXTS):
            where = f"torch/{path}:{frame.line}" if path else f"{frame.file}:{frame.line}"
            raise MappingFailed(f"{place[1] or 'code'} ({where}) makes the arguments")
    return Passed(is_object, tuple(members))
