"""The user's program as text that can be changed: its files, its calls, where it compiles, and the diff of a change."""

from __future__ import annotations

import ast
import difflib
import itertools
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from ..diagnosis.change import Edit, format_settings, merge_settings
from ..diagnosis.evidence import group_by
from ..diagnosis.source_edits import (
    IMPORT_TORCH,
    EditedSource,
    EditError,
    SourceText,
    Splice,
    imports_torch,
)
from ..formatting import format_place
from ..system.source_files import split_lines

#: Where settings are assigned: below the imports of the main file, or at the beginning of a function (file and line).
MODULE = ("", 0)
Place = tuple[str, int]
#: The options of `module.compile()`, which nothing else tells from other methods of that name.
_OPTIONS = frozenset(("fullgraph", "dynamic", "backend", "mode", "options", "disable", "isolate_recompiles"))


@dataclass(frozen=True)
class ProgramChange:
    """One change of the program that runs can prove.

    `kind` is one of `observation.KINDS`, and `title` says what it does, in one line. `parts` has splices of files.
    `settings` are assigned at `place`. Two changes that are equal but for their titles are one. `is_whole`: no part of
    it makes sense without the others.

    A change that compiles something inside of a function, in place of the function, names it in `uncompiled`; then
    `runs` are the parts in the copy that runs, in which `OBSERVE` is called where the function was compiled.
    """

    kind: str
    title: str = field(compare=False)
    parts: tuple[tuple[str, Splice], ...] = ()
    settings: tuple[tuple[str, str | int | bool], ...] = ()
    place: Place = MODULE
    is_whole: bool = False
    runs: tuple[tuple[str, Splice], ...] = ()
    uncompiled: str | None = None

    def split(self) -> list[ProgramChange]:
        """The change in the smallest parts that can be left out."""
        if self.is_whole or len(self.parts) + len(self.settings) < 2:
            return [self]
        lines = [
            ProgramChange(self.kind, splice.new.strip() or self.title, ((file, splice),))
            for file, whole in self.parts
            for splice in _split_lines(whole)
        ]
        return [
            *lines,
            *(
                ProgramChange(self.kind, f"{key} = {value!r}", (), ((key, value),), self.place)
                for key, value in self.settings
            ),
        ]


def _split_lines(splice: Splice) -> list[Splice]:
    """Lines that are put at one place, each as a splice of its own; other code as it is."""
    lines = splice.new.splitlines(keepends=True)
    is_one = not splice.is_line or len(lines) < 2 or not all(map(_is_statement, lines))
    return [splice] if is_one else [Splice(splice.start, splice.end, line, True) for line in lines]


def _is_statement(line: str) -> bool:
    try:
        return len(ast.parse(line.strip()).body) == 1
    except (SyntaxError, ValueError):
        return False


class ProgramFile(SourceText):
    """One file of the program. `name` is its path, or `Cell In[3]`."""

    def __init__(self, name: str, text: str):
        super().__init__(text)
        self.name = name

    @cached_property
    def parents(self) -> Mapping[ast.AST, ast.AST]:
        """Each node's parent."""
        return {child: node for node in ast.walk(self.tree) for child in ast.iter_child_nodes(node)}

    def get_text(self, node: ast.expr | ast.stmt) -> str:
        """The text of a node as it stands in the file."""
        start, end = self.find_span(node)
        return self.text[start:end]

    def find_statement_of(self, node: ast.AST) -> ast.stmt | None:
        """The innermost statement that has a node."""
        current: ast.AST | None = node
        while current is not None and not isinstance(current, ast.stmt):
            current = self.parents.get(current)
        return current

    def find_function(self, line: int) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
        """The innermost function around a line."""
        around = [
            node
            for node in ast.walk(self.tree)
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            and node.body[0].lineno <= line <= (node.end_lineno or node.lineno)
        ]
        return max(around, key=lambda node: node.lineno, default=None)

    def insert_after(self, statement: ast.stmt, lines: Sequence[str]) -> Splice | None:
        """Lines after a statement, with its indentation; None where no line can be put."""
        before = self.insert_before(statement, lines)
        end = statement.end_lineno or statement.lineno
        rest = self._get_line(end)[len(self._get_line(end).rstrip()) :]
        if before is None or not rest:
            return None
        after = self.starts[end]
        return Splice(after, after, before.new, True)

    def remove(self, statement: ast.stmt) -> Splice | None:
        """The splice that removes a statement with its lines; None if it shares them."""
        start, end = self.starts[statement.lineno - 1], self.starts[statement.end_lineno or statement.lineno]
        around = self.text[start:end].replace(self.get_text(statement), "", 1).strip()
        return None if around and not around.startswith("#") else Splice(start, end, "", False)

    def replace_statements(self, first: ast.stmt, last: ast.stmt, new: str) -> Splice:
        """Other code in place of statements that follow each other."""
        return Splice(self.find_span(first)[0], self.find_span(last)[1], new, False)

    def insert_before(self, statement: ast.stmt, lines: Sequence[str]) -> Splice | None:
        """Lines before a statement, with its indentation; None where no line can be put."""
        start = self.starts[statement.lineno - 1]
        offset = self.find_span(statement)[0]
        indent = self.text[start:offset]
        has_own_line = not indent.strip() and not getattr(statement, "decorator_list", None)
        if not has_own_line or self.text.startswith("elif", offset):
            return None
        return Splice(start, start, self.end_lines("\n".join(f"{indent}{line}" for line in lines)), True)

    def replace(self, node: ast.expr, new: str) -> Splice:
        """Other code in place of an expression."""
        start, end = self.find_span(node)
        return Splice(start, end, new, False)

    def set_option(self, call: ast.expr, name: str, value: str | None) -> Splice | None:
        """A keyword of a call with another value, one more, or one less (None); None if nothing changes."""
        if not isinstance(call, ast.Call):
            end = self.find_span(call)[1]
            return None if value is None else Splice(end, end, f"({name}={value})", False)
        parts = self.list_items(call)
        spans = [self.find_span(part) for part in parts]
        end = self.find_span(call)[1]
        at = next((i for i, part in enumerate(parts) if isinstance(part, ast.keyword) and part.arg == name), None)
        if at is None:
            last = spans[-1][1] if spans else end - 1
            return None if value is None else Splice(last, last, f"{', ' if spans else ''}{name}={value}", False)
        if value is not None:
            new = f"{name}={value}"
            return None if self.text[slice(*spans[at])] == new else Splice(*spans[at], new, False)
        return self.remove_item(parts, at)

    def list_items(self, call: ast.Call) -> list[ast.expr | ast.keyword]:
        """The arguments of a call in their order."""
        items: list[ast.expr | ast.keyword] = [*call.args, *call.keywords]
        return sorted(items, key=lambda item: (item.lineno, item.col_offset))

    def remove_item(self, items: Sequence[ast.expr | ast.keyword | ast.arg], at: int) -> Splice:
        """The splice that removes one of several items with its comma."""
        spans = [self.find_span(item) for item in items]
        start = spans[at - 1][1] if at else spans[at][0]
        stop = spans[at][1] if at or len(spans) == 1 else spans[at + 1][0]
        return Splice(start, stop, "", False)


@dataclass(frozen=True)
class CompileCall:
    """A place where the program compiles something: `torch.compile(model, ...)`, `@torch.compile`, `model.compile()`.

    `target` is what is compiled, where it is an argument or the owner of the method. `name` is what the result is
    assigned to.
    """

    file: ProgramFile
    node: ast.expr
    target: ast.expr | None = None
    name: str | None = None

    @property
    def place(self) -> str:
        return format_place(self.file.name, self.node.lineno)

    def get_option(self, name: str) -> ast.expr | None:
        """The value of a keyword; None without one."""
        keywords = self.node.keywords if isinstance(self.node, ast.Call) else []
        return next((keyword.value for keyword in keywords if keyword.arg == name), None)


class Program:
    """The user's own files, the main one first, and what can be said of their text.

    `typed` has cells as their user typed them: their text is what IPython made of that.
    """

    def __init__(self, texts: Mapping[str, str], typed: Mapping[str, str] | None = None):
        self._typed = typed or {}
        self.files: dict[str, ProgramFile] = {}
        for name, text in texts.items():
            try:
                self.files[name] = ProgramFile(name, text)
            except EditError:
                continue  # Python has another opinion of it than this version's parser; it is not changed.

    @property
    def main(self) -> ProgramFile:
        """Where settings go: the script, or the first cell that imports torch."""
        importing = (file for file in self._cells if imports_torch(file.tree))
        return next(importing, next(iter(self.files.values())))

    @property
    def _cells(self) -> list[ProgramFile]:
        return [file for name, file in self.files.items() if name in self._typed]

    def find(self, file: str | None) -> ProgramFile | None:
        """A file by its name or path."""
        return self.files.get(file or "") or self.files.get(os.path.realpath(file) if file else "")

    @cached_property
    def compile_calls(self) -> tuple[CompileCall, ...]:
        """Where the program compiles, in the order of the text."""
        return tuple(call for file in self.files.values() for call in _find_compile_calls(file))

    def list_calls(self, callee: str) -> Iterator[tuple[ProgramFile, ast.Call]]:
        """All calls of what this expression names, in all files."""
        for file in self.files.values():
            for node in ast.walk(file.tree):
                if isinstance(node, ast.Call) and ast.unparse(node.func) == callee:
                    yield file, node

    def list_method_calls(self, name: str) -> Iterator[tuple[ProgramFile, ast.Call]]:
        """All calls of a method of this name."""
        for file in self.files.values():
            for node in ast.walk(file.tree):
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == name:
                    yield file, node

    def convert(self, edits: Iterable[Edit]) -> tuple[tuple[str, Splice], ...]:
        """The splices of a plan's edits. EditError if one does not fit the files."""
        found: dict[tuple[str, Splice], None] = {}
        for edit in edits:
            file = self.find(edit.file)
            if file is None:
                raise EditError(f"{edit.file} is not a file of the program")
            wanted = [edit.imports] if edit.imports else []
            for statement in wanted:
                found[file.name, file.insert_import(statement)] = None
            found.update(dict.fromkeys((file.name, splice) for splice in file.find_splices(edit)))
        return tuple(key for key in found if key[1].new or key[1].start != key[1].end)

    def apply(self, changes: Sequence[ProgramChange], is_run: bool = False) -> dict[str, EditedSource]:
        """The files that the changes edit, or, with `is_run`, as the copy that runs has them. EditError if two of them
        want the same text, or the result is no Python.
        """
        splices: dict[str, list[Splice]] = {}
        parts = (change.runs if is_run and change.runs else change.parts for change in changes)
        for name, splice in dict.fromkeys(itertools.chain.from_iterable(parts)):
            splices.setdefault(name, []).append(splice)
        for place, group in group_by(changes, lambda change: change.place).items():
            self._add_settings(place, merge_settings([dict(change.settings) for change in group]).settings, splices)
        return {name: self._splice(self.files[name], found) for name, found in splices.items() if found}

    def _add_settings(
        self, place: Place, settings: dict[str, str | int | bool], splices: dict[str, list[Splice]]
    ) -> None:
        if not settings:
            return
        lines = format_settings(settings).splitlines()
        file = self.main if place == MODULE else self.files[place[0]]
        if place == MODULE:
            splice = file.insert_below_imports("\n".join(lines))
        else:
            function = file.find_function(place[1])
            inserted = file.insert_before(function.body[0], lines) if function is not None else None
            if inserted is None:
                raise EditError("the settings have no place")
            splice = inserted
        splices.setdefault(file.name, []).append(splice)

    def _splice(self, file: ProgramFile, found: Sequence[Splice]) -> EditedSource:
        cells = self._cells  # What a cell imports, the cells below it have.
        around = cells[: cells.index(file) + 1] if file in cells else [file]
        needs_torch = any("torch." in splice.new for splice in found)
        has_torch = any(imports_torch(one.tree) for one in around)
        wanted = [file.insert_import(IMPORT_TORCH)] if needs_torch and not has_torch else []
        splices = sorted([*wanted, *found], key=lambda splice: (splice.start, splice.end))
        for one, other in itertools.pairwise(splices):
            is_same_place = one.start == other.start and not (one.is_line or other.is_line)
            if other.start < one.end or (is_same_place and one.end != one.start):
                raise EditError("two changes replace the same code")
        edited = file.splice(splices)
        try:
            edited.parse(file.name, ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
            raise EditError(f"the changed code is not valid Python: {error}") from None
        return edited

    def diff(self, changes: Sequence[ProgramChange], folder: str | None = None) -> str:
        """The changes as a unified diff; paths are relative to `folder` where they are below it."""
        return "".join(
            line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"
            for name, edited in self.apply(changes).items()
            for line in _diff_lines(_shorten(name, folder), *self._list_lines(name, edited))
        )

    def _list_lines(self, name: str, edited: EditedSource) -> tuple[list[str], list[str]]:
        """The lines of a file before and after, as its user typed those that stay."""
        before = split_lines(self.files[name].text)
        typed = split_lines(self._typed.get(name, self.files[name].text))
        shown = typed if len(typed) == len(before) else before
        after = [
            shown[number - 1] if 0 < number <= len(before) and line == before[number - 1] else line
            for line, number in zip(split_lines(edited.text), edited.lines, strict=False)
        ]
        return shown, after

    def count_lines(self, changes: Sequence[ProgramChange]) -> int:
        """The lines of the program that are new or other ones; removed lines that nothing replaces count too."""
        count = 0
        for name, edited in self.apply(changes).items():
            before, after = split_lines(self.files[name].text), split_lines(edited.text)
            for tag, a, b, c, d in difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
                count += max(b - a, d - c) if tag != "equal" else 0
        return count


def _diff_lines(name: str, before: Sequence[str], after: Sequence[str]) -> Iterator[str]:
    return difflib.unified_diff(before, after, f"a/{name}", f"b/{name}")


def _shorten(name: str, folder: str | None) -> str:
    if folder and name.startswith(os.path.join(folder, "")):
        return os.path.relpath(name, folder)
    return name.lstrip("/")


def _find_compile_calls(file: ProgramFile) -> Iterator[CompileCall]:
    modules, functions = _find_torch_names(file.tree)
    decorators = {
        decorator
        for node in ast.walk(file.tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        for decorator in node.decorator_list
    }
    for node in ast.walk(file.tree):
        is_call = isinstance(node, ast.Call)
        named = node.func if isinstance(node, ast.Call) else node
        if not (is_call or node in decorators) or not isinstance(named, ast.expr):
            continue
        if _is_compile(named, modules, functions):
            assert isinstance(node, ast.expr)
            args = node.args if isinstance(node, ast.Call) else []
            yield CompileCall(file, node, args[0] if args else None, _find_assigned(file, node))
        elif isinstance(node, ast.Call) and node.args and _is_compile(node.args[0], modules, functions):
            yield CompileCall(file, node)  # functools.partial(torch.compile, ...)
        elif isinstance(node, ast.Call) and _is_method(node) and modules:
            assert isinstance(node.func, ast.Attribute)
            yield CompileCall(file, node, node.func.value)


def _find_torch_names(tree: ast.Module) -> tuple[set[str], set[str]]:
    """The names of the module torch, and those of its function compile."""
    modules, functions = set(), set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            modules |= {alias.asname or "torch" for alias in node.names if alias.name.partition(".")[0] == "torch"}
        elif isinstance(node, ast.ImportFrom) and node.module == "torch":
            functions |= {alias.asname or alias.name for alias in node.names if alias.name == "compile"}
    return modules, functions


def _is_compile(node: ast.expr, modules: set[str], functions: set[str]) -> bool:
    if isinstance(node, ast.Name):
        return node.id in functions
    is_attribute = isinstance(node, ast.Attribute) and node.attr == "compile"
    return is_attribute and isinstance(node.value, ast.Name) and node.value.id in modules  # type: ignore[attr-defined]


def _is_method(call: ast.Call) -> bool:
    """`model.compile(dynamic=True)`: a method named so, with none but torch's options."""
    is_named = isinstance(call.func, ast.Attribute) and call.func.attr == "compile"
    return is_named and not call.args and all(keyword.arg in _OPTIONS for keyword in call.keywords)


def _find_assigned(file: ProgramFile, node: ast.AST) -> str | None:
    parent = file.parents.get(node)
    if isinstance(parent, ast.Assign) and len(parent.targets) == 1:
        return ast.unparse(parent.targets[0])
    return None
