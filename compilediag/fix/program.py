"""The user's program as text that can be changed: its files, its calls, where it compiles, and the diff of a change;
what a run of it showed; and what a move is, which proposes changes from that.
"""

from __future__ import annotations

import ast
import difflib
import itertools
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol, TypeVar

from ..diagnosis.causes.cause import Cause, find_causes, get_value_type
from ..diagnosis.change import BEGIN, CodeChange, Edit, Settings, merge_settings
from ..diagnosis.evidence import Evidence, group_by
from ..diagnosis.plan import Plan, make_plan
from ..diagnosis.plan.plan import list_diff_lines
from ..diagnosis.program_file import CompileCall, ProgramFile, find_compile_calls
from ..diagnosis.rules.recompiles import advise
from ..diagnosis.source_edits import IMPORT_TORCH, EditedSource, EditError, Splice, imports_torch, read_settings
from ..system.source_files import split_lines

#: Where settings are assigned: below the imports of the main file, or at the beginning of a function (file and line).
MODULE = ("", 0)
Place = tuple[str, int]
N = TypeVar("N", bound=ast.AST)


@dataclass(frozen=True)
class ProgramChange:
    """One change of the program that runs can prove.

    `kind` is one of `KINDS`, and `title` says what it does, in one line. `parts` has splices of files.
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
        """The change in the smallest parts that can be left out: statements, each a line, and settings."""
        if self.is_whole or len(self.parts) + len(self.settings) < 2:
            return [self]
        found = []
        for file, whole in self.parts:
            lines = whole.new.splitlines(keepends=True)
            is_one = not whole.is_line or len(lines) < 2 or not all(map(_is_statement, lines))
            splices = [whole] if is_one else [Splice(whole.start, whole.end, line, True) for line in lines]
            found += [ProgramChange(self.kind, one.new.strip() or self.title, ((file, one),)) for one in splices]
        return [*found, *(assign_settings({key: value}, self.place) for key, value in self.settings)]


def change_file(kind: str, title: str, file: ProgramFile, splice: Splice) -> ProgramChange:
    """A change at one place of a file."""
    return ProgramChange(kind, title, ((file.name, splice),))


def assign_settings(settings: Settings, place: Place = MODULE) -> ProgramChange:
    """The change that assigns settings of torch."""
    title = ", ".join(f"{key} = {value!r}" for key, value in settings.items())
    return ProgramChange("settings", title, (), tuple(settings.items()), place)


def _is_statement(line: str) -> bool:
    try:
        return len(ast.parse(line.strip()).body) == 1
    except (SyntaxError, ValueError):
        return False


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
        return tuple(call for file in self.files.values() for call in find_compile_calls(file))

    def walk(self, kind: type[N]) -> Iterator[tuple[ProgramFile, N]]:
        """All nodes of a kind, in all files."""
        for file in self.files.values():
            yield from ((file, node) for node in ast.walk(file.tree) if isinstance(node, kind))

    def list_calls(self, callee: str) -> Iterator[tuple[ProgramFile, ast.Call]]:
        """All calls of what this expression names, in all files."""
        return ((file, node) for file, node in self.walk(ast.Call) if ast.unparse(node.func) == callee)

    def list_method_calls(self, name: str) -> Iterator[tuple[ProgramFile, ast.Call]]:
        """All calls of a method of this name."""
        for file, node in self.walk(ast.Call):
            if isinstance(node.func, ast.Attribute) and node.func.attr == name:
                yield file, node

    def convert(self, edits: Iterable[Edit]) -> tuple[tuple[str, Splice], ...]:
        """The splices of a plan's edits. EditError if one does not fit the files."""
        found: dict[tuple[str, Splice], None] = {}
        for edit in edits:
            file = self.find(edit.file)
            if file is None:
                raise EditError(f"{edit.file} is not a file of the program")
            if edit.imports:
                found[file.name, file.insert_import(edit.imports)] = None
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
            settings = merge_settings([dict(change.settings) for change in group]).settings
            if not settings:
                continue
            file = self.main if place == MODULE else self.files[place[0]]
            function = None if place == MODULE else file.find_function(place[1])
            splices.setdefault(file.name, []).extend(file.assign_settings(settings, function=function))
        edited = {}
        cells = self._cells
        for name, found in splices.items():
            file = self.files[name]
            around = cells[: cells.index(file) + 1] if file in cells else [file]  # A cell has what those above import.
            needs_torch = any("torch." in splice.new for splice in found)
            has_torch = any(imports_torch(one.tree) for one in around)
            wanted = [file.insert_import(IMPORT_TORCH)] if needs_torch and not has_torch else []
            if found:
                edited[name] = file.join([*wanted, *found], may_meet=True)
        return edited

    def diff(self, changes: Sequence[ProgramChange], folder: str | None = None) -> str:
        """The changes as a unified diff; paths are relative to `folder` where they are below it."""
        diff: list[str] = []
        for name, edited in self.apply(changes).items():
            before = split_lines(self.files[name].text)
            typed = split_lines(self._typed.get(name, self.files[name].text))
            shown = typed if len(typed) == len(before) else before
            # As their user typed the lines that stay.
            after = [
                shown[number - 1] if 0 < number <= len(before) and line == before[number - 1] else line
                for line, number in zip(split_lines(edited.text), edited.lines, strict=False)
            ]
            diff += list_diff_lines(_shorten(name, folder), shown, after)
        return "".join(diff)

    def count_lines(self, changes: Sequence[ProgramChange]) -> int:
        """The lines of the program that are new or other ones; removed lines that nothing replaces count too."""
        count = 0
        for name, edited in self.apply(changes).items():
            before, after = split_lines(self.files[name].text), split_lines(edited.text)
            for tag, a, b, c, d in difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
                count += max(b - a, d - c) if tag != "equal" else 0
        return count


def _shorten(name: str, folder: str | None) -> str:
    if folder and name.startswith(os.path.join(folder, "")):
        return os.path.relpath(name, folder)
    return name.lstrip("/")


# What a run of the program showed

#: What a change is, for `--allow`.
KINDS = ("dynamic", "marks", "settings", "tensor", "isolate", "code")
Bundle = tuple[ProgramChange, ...]


@dataclass(frozen=True)
class Observation:
    """What a run of the program in some state showed. `unchanged` is what the unchanged program showed. `is_uncached`:
    a graph enters autocast, so no cache keeps it. `chosen` are the causes to move for, if that is not all.
    """

    program: Program
    evidence: Evidence
    unchanged: Observation | None = None
    is_uncached: bool = False
    chosen: tuple[Cause, ...] | None = None

    @cached_property
    def causes(self) -> tuple[Cause, ...]:
        """The root causes of the recompiles that happened."""
        return tuple(find_causes(self.evidence)) if self.chosen is None else self.chosen

    @cached_property
    def open_causes(self) -> tuple[Cause, ...]:
        """Those of which not every compiled version is known to be needed."""
        return tuple(cause for cause in self.causes if not is_needed(cause))

    @cached_property
    def plan(self) -> Plan:
        """What the diagnosis predicts."""
        return make_plan(self.evidence)

    def change_settings(self, change: CodeChange) -> Iterator[ProgramChange | None]:
        """The changes that assign the settings of a change where `place_settings` has put them; None where the program
        has no such place.
        """
        if change.settings:
            yield assign_settings(change.settings)
        for edit in (edit for edit in change.edits if edit.kind == BEGIN):
            file = self.program.find(edit.file)
            try:
                place = (file.name, file.find_begun(edit).body[0].lineno) if file is not None else None
            except EditError:
                place = None
            yield assign_settings(read_settings(edit), place) if place is not None else None


class Move(Protocol):
    """Proposes bundles of changes."""

    def propose(self, seen: Observation) -> Iterable[Bundle]:
        """The bundles, the most likely first; none where the move does not apply."""
        ...


def change_edits(seen: Observation, edits: Sequence[Edit], kind: str, title: str) -> ProgramChange | None:
    """Edits of the diagnosis as a change; None if they do not fit the program."""
    try:
        parts = seen.program.convert(edits)
    except EditError:
        return None
    return ProgramChange(kind, title, parts) if parts else None


#: Rules about conditions: a version for each side is expected, and still the condition can be decided by the caller.
_CONDITIONS = ("branch", "size_relation")


def is_needed(cause: Cause) -> bool:
    """True if every compiled version is known to be needed."""
    advice = advise(cause.alone)
    return advice.is_expected and advice.rule.id not in _CONDITIONS


def can_be_dynamic(cause: Cause) -> bool:
    """True for a size or a number, and for a relation of several."""
    if cause.kind == "length":
        return False
    types = {get_value_type(value) for value in cause.values}
    return cause.path.is_size or cause.is_relation or bool(types & {"int", "float"})
