"""What the user wrote that keeps sizes and numbers static: `dynamic=False` where a function is compiled, or a setting.

A recording has neither, so the program's own files are parsed. A file is read only if `SourceReader` reads it, and if
each of its lines in the stack of the compile is the recorded one. Nothing in it is evaluated.
"""

from __future__ import annotations

import ast
import functools
import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ...decode.call_stacks import Frame, is_torch_file
from ...decode.calls import find_compiled_call, get_name
from ...events import Recompile, StackFrame
from ...formatting import format_line, format_place
from ...system.source_files import SourceReader, find_cell_number, read_cell_code, split_lines
from ..change import Edit
from ..evidence import Evidence
from ..program_file import CompileCall, ProgramFile, find_compile_calls
from ..source_edits import STATIC_OPTION, STATIC_SETTINGS, EditError, is_static, parse_code, undo_static
from .call_sites import read_own_code


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
        self._reader = SourceReader(self._is_own)
        self._texts: dict[str, str | None] = {}
        self._found: dict[str | None, tuple[StaticChoice, ...]] = {}

    def find(self, rows: Iterable[Recompile]) -> tuple[StaticChoice, ...]:
        """What is written where the functions of recompiles are compiled, and the settings of their files; nothing if
        nothing is found for one of them.
        """
        found = [self._find(self._stacks.find(row.compile_key)) for row in rows]
        return tuple(dict.fromkeys(itertools.chain.from_iterable(found))) if all(found) else ()

    def _find(self, stack: str | None) -> tuple[StaticChoice, ...]:
        if stack not in self._found:
            self._found[stack] = tuple(self._choose([*self._stacks.walk(stack)][::-1]))
        return self._found[stack]

    def _choose(self, path: Sequence[StackFrame]) -> Iterator[StaticChoice]:
        compiled = find_compiled_call([Frame(row.file, row.line, row.function) for row in path])
        at = len(path) - 1 if compiled is None else compiled + 1
        function = next((row for row in path[at:] if not is_torch_file(row.file or "")), next(iter(path[at:]), None))
        caller = next((row for row in reversed(path[:at]) if not is_torch_file(row.file or "")), None)
        if function is None:
            return
        written = [one for file in self._list_files(path) for one in self._read(file, path)]
        own = _match([one for one in written if not one.is_setting], function, caller)
        yield from (one.choice for one in own if one.choice is not None)
        yield from (one.choice for one in written if one.is_setting and one.choice is not None)

    def _list_files(self, path: Iterable[StackFrame]) -> list[str]:
        """The user's own files in a stack. Cells are there with all that ran before: they may compile what it calls."""
        files = [row.file for row in path if row.file and self._code.is_own(row.file, row.function, row.code)]
        last = max((find_cell_number(file) or 0 for file in files), default=0)
        cells = [f"Cell In[{number}]" for number in range(last, 0, -1)] if self._is_own else []
        return list(dict.fromkeys([*files, *cells]))

    def _read(self, file: str, path: Iterable[StackFrame]) -> tuple[_Written, ...]:
        number = find_cell_number(file)
        if file not in self._texts:
            is_cell = number is not None and self._is_own
            self._texts[file] = read_cell_code(number or 0) if is_cell else self._reader.find(file)
        text, known = self._texts[file], {row.line: row.code.strip() for row in path if row.file == file and row.code}
        lines = split_lines(text or "") if known else []
        is_recorded = bool(known) or number is not None
        if text is None or not is_recorded or any(_get(lines, line) != code for line, code in known.items()):
            return ()
        return _list_written(file, text)


def _get(lines: Sequence[str], line: int | None) -> str | None:
    return lines[line - 1].strip() if line and 0 < line <= len(lines) else None


def _match(calls: Sequence[_Written], function: StackFrame, caller: StackFrame | None) -> Sequence[_Written]:
    """The places that compile a function: its decorator, those that name it, those whose result is called. If there are
    none, the only place of all that is no decorator.
    """
    name, line = function.function or "", function.line or 0
    decorators = [(one, one.function) for one in calls if one.function is not None]
    decorated = [one for one, (of, first, last) in decorators if of == name and first <= line <= last]
    others = [one for one in calls if one.function is None]
    tree = parse_code(caller.call or "") if caller is not None else None
    called = getattr(tree.body[0], "value", None) if tree is not None else None
    callee = get_name(called.func) if isinstance(called, ast.Call) else None
    named = [one for one in others if name in one.names] or [one for one in others if callee in one.names]
    found = decorated or named or (others if len(others) == 1 else [])
    last = max((find_cell_number(one.choice.file) or 0 for one in found if one.choice), default=0)
    # A cell that is executed again compiles again.
    return [one for one in found if one.choice is None or (find_cell_number(one.choice.file) or 0) == last]


@functools.lru_cache(32)
def _list_written(name: str, text: str) -> tuple[_Written, ...]:
    """What is written in one file; nothing if it is no Python."""
    try:
        file = ProgramFile(name, text)
        calls = [_read_call(call) for call in find_compile_calls(file)]
        return (*calls, *(_Written(choice=choice, is_setting=True) for choice in _list_settings(file)))
    except (EditError, RecursionError):
        return ()


def _read_call(call: CompileCall) -> _Written:
    names = [get_name(call.target) if call.target is not None else None, (call.name or "").rpartition(".")[2]]
    node, function = call.function, None
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        function = (node.name, node.decorator_list[0].lineno, node.end_lineno or node.lineno)
    return _Written(frozenset(filter(None, names)), function, _read_choice(call))


def _read_choice(call: CompileCall) -> StaticChoice | None:
    """`dynamic=False` of a call with its edit; `dynamic=IS_DYNAMIC` and `**options` without one."""
    for keyword in call.options:
        line, text = keyword.value.lineno, ast.unparse(keyword)
        if is_static(keyword):
            return StaticChoice(STATIC_OPTION, text, call.file.name, line, _undo_call(call, line))
        if keyword.arg in (STATIC_OPTION, None) and not isinstance(keyword.value, ast.Constant):
            return StaticChoice(STATIC_OPTION, format_line(text, 80), call.file.name, line)
    return None


def _undo_call(call: CompileCall, line: int) -> Edit | None:
    text = call.file.get_text(call.node)
    code = f"{'@' if call.function is not None else ''}{text if text.isprintable() else ast.unparse(call.node)}"
    return _undo(call.file, line, code)


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
