"""The files and notebook cells that a plan changes: as a unified diff, and as lines with the number of their step.

A cell is read from the IPython that runs in this process, so a plan has the cells only of a session recorded there.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from ...errors import CompilediagError
from ...formatting import get_basename
from ...system.files import find_working_folder
from ...system.source_files import SourceReader, find_cell_number, read_cell_code, read_typed_cell, split_lines
from ..change import Edit, Settings, format_settings
from ..source_edits import apply_edits
from .plan_step import PlanStep

#: A cell of at most so many lines is shown whole; of a longer one, and of a file, the lines around each change.
_WHOLE, _AROUND = 40, 3
_HUNK = re.compile(r"@@ -(\d+)(?:,\d+)? \+\d+(?:,\d+)? @@")
_NO_END = "\\ No newline at end of file\n"


class DiffLine(NamedTuple):
    """A line of a diff: its number before the change, None for a new one; " ", "-" or "+"; its text; and the number of
    the plan's step that changes it, None for a line that stays.
    """

    number: int | None
    mark: str
    text: str
    step: int | None = None


@dataclass(frozen=True)
class ChangedSource:
    """A file or cell that a plan changes. `before` and `after` are its texts; None where only the lines are known."""

    name: str
    lines: tuple[DiffLine, ...]
    before: str | None = None
    after: str | None = None

    @property
    def cell(self) -> int | None:
        """The number of the cell; None for a file."""
        return find_cell_number(self.name)

    @property
    def place(self) -> str:
        """`In[4]`, `train.py`"""
        return get_basename(self.name) if self.cell is None else f"In[{self.cell}]"


def list_changed_sources(
    steps: Sequence[PlanStep], settings: Settings, is_own: bool, proven: str = ""
) -> tuple[ChangedSource, ...]:
    """What the steps of a plan change, or the patch that a search has proven; empty if a file is not the recorded one.
    `settings` are those of all steps, merged. `is_own`: this process recorded the session.
    """
    if proven:
        return tuple(_read_patch(proven, is_own))
    return tuple(
        ChangedSource(name, tuple(_list_lines(name, before, after, steps)), before, after)
        for name, (before, after) in _apply(steps, settings, is_own).items()
    )


def make_patch(sources: Sequence[ChangedSource]) -> str | None:
    """What the steps of a plan change, as a unified diff; None if it is nothing."""
    return "".join(line for source in sources for line in _format_diff(source)) or None


# The texts before and after

Texts = dict[str, tuple[str, str]]


def _apply(steps: Sequence[PlanStep], settings: Settings, is_own: bool) -> Texts:
    """Each file and cell before and after; empty if one of them is not what was recorded any more.

    Settings are put below the imports of the first one. A step that only a person can follow is not in it.
    """
    edits: dict[str, list[Edit]] = {}
    for edit in (edit for step in steps for edit in step.edits):
        edits.setdefault(edit.file, []).append(edit)
    reader = SourceReader(is_own)
    places = (step for step in steps if step.settings and step.file and _is_unchanged(step, reader, is_own))
    files = list(edits) or [step.file for step in places if step.file][:1]
    block = {file: format_settings(settings) for file in files[:1]}
    try:
        return {file: _change(file, edits.get(file, []), block.get(file, ""), reader, is_own) for file in files}
    except (CompilediagError, SyntaxError, ValueError, RecursionError, MemoryError):
        return {}


def _change(file: str, edits: Sequence[Edit], settings: str, reader: SourceReader, is_own: bool) -> tuple[str, str]:
    number = find_cell_number(file)
    if number is None:
        before = reader.read(file)
        return before, apply_edits(before, edits, settings).text
    code, typed = read_cell_code(number), read_typed_cell(number)
    if not is_own or code is None or typed is None:
        raise CompilediagError(f"{file} is no cell of this notebook")
    # As a docstring, the line of our magic stays above settings. What a cell before imports, this one has.
    source, edited = code.splitlines(), apply_edits(code, edits, settings, has_torch=True)
    after = [
        typed[number - 1] if line == source[number - 1] else line
        for line, number in zip(edited.text.splitlines(), edited.lines, strict=False)
    ]
    return "\n".join(typed), "\n".join(after)


def _is_unchanged(step: PlanStep, reader: SourceReader, is_own: bool) -> bool:
    """True if the whole line of a step is the recorded one: a session from elsewhere may name any file."""
    if step.line is None or step.line < 1 or not step.code:
        return False
    number = find_cell_number(step.file or "")
    read = reader.find(step.file or "") if number is None else read_cell_code(number) if is_own else None
    lines = split_lines(read or "")
    return [line.strip() for line in lines[step.line - 1 : step.line]] == [step.code.strip()]


# Diffs


def _format_diff(source: ChangedSource) -> Iterator[str]:
    before, after = (split_lines(text or "") for text in (source.before, source.after))
    return list_diff_lines(_name_in_patch(source.name), before, after)


def list_diff_lines(name: str, before: Sequence[str], after: Sequence[str]) -> Iterator[str]:
    """The lines of a unified diff of a file."""
    for line in difflib.unified_diff(before, after, f"a/{name}", f"b/{name}"):
        yield line if line.endswith("\n") else f"{line}\n{_NO_END}"


def _name_in_patch(file: str) -> str:
    """The path from the current folder if the file is below it, for `git apply` and `patch -p1`."""
    if find_cell_number(file) is not None:
        return file
    here, path = find_working_folder(), Path(file)
    if here is not None and (path := path.absolute()).is_relative_to(here):
        return path.relative_to(here).as_posix()
    return path.as_posix().lstrip("/")


def _list_lines(file: str, before: str, after: str, steps: Sequence[PlanStep]) -> Iterator[DiffLine]:
    old, new = before.splitlines(), after.splitlines()
    around = _WHOLE if find_cell_number(file) is not None and len(old) <= _WHOLE else _AROUND
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    for tag, a, b, c, d in (code for group in matcher.get_grouped_opcodes(around) for code in group):
        if tag == "equal":
            yield from (DiffLine(number + 1, " ", old[number]) for number in range(a, b))
            continue
        found = [_find_step(file, text, a + 1, steps) for text in new[c:d]]
        # Where no new line says whose it is: the step that takes code away nearest to it.
        replacing = (
            (abs(edit.line - a - 1), number)
            for number, step in enumerate(steps, 1)
            for edit in step.edits
            if edit.file == file and edit.kind == "replace"
        )
        step = next(filter(None, found), None) or min(replacing, default=(0, None))[1]
        yield from (DiffLine(number + 1, "-", old[number], step) for number in range(a, b))
        for text, own in zip(new[c:d], found, strict=True):
            step = own or step
            yield DiffLine(None, "+", text, step)


def _find_step(file: str, text: str, line: int, steps: Sequence[PlanStep]) -> int | None:
    """The step that a new line is of: the one with an edit nearest to it, or with a setting that it assigns."""
    found = [
        (abs(edit.line - line), number)
        for number, step in enumerate(steps, 1)
        for edit in step.edits
        if edit.file == file and _has_line(edit, text)
    ]
    if found:
        return min(found)[1]
    key = text.partition("=")[0].rpartition(".")[2].strip()
    return next((number for number, step in enumerate(steps, 1) if key in (step.settings or {})), None)


def _has_line(edit: Edit, text: str) -> bool:
    if edit.kind == "replace":
        return edit.new in text
    return text.strip() in edit.new.splitlines() or text.strip() == edit.imports


# A patch that a search has proven


def _read_patch(patch: str, is_own: bool) -> Iterator[ChangedSource]:
    """The files of a unified diff that compilediag has made. The texts are those of cells, which a page can replace."""
    for part in re.split(r"^(?=--- a/)", patch, flags=re.MULTILINE):
        head, *rest = part.splitlines() or [""]
        if not head.startswith("--- a/") or not rest:
            continue
        name, lines = head.removeprefix("--- a/"), tuple(_read_hunks(rest[1:]))
        number = find_cell_number(name)
        typed = read_typed_cell(number) if is_own and number is not None else None
        after = None if typed is None else _apply_lines(typed, lines)
        yield ChangedSource(name, lines, *(("\n".join(typed), after) if typed and after is not None else ()))


def _read_hunks(lines: Iterable[str]) -> Iterator[DiffLine]:
    number = 0
    for line in lines:
        if found := _HUNK.match(line):
            number = int(found[1])
        elif line[:1] in (" ", "-"):
            yield DiffLine(number, line[0], line[1:])
            number += 1
        elif line[:1] == "+":
            yield DiffLine(None, "+", line[1:])


def _apply_lines(before: Sequence[str], lines: Sequence[DiffLine]) -> str | None:
    """The text with the new lines; None if it does not have the old ones."""
    after: list[str] = []
    at = 0
    for line in lines:
        if line.number is None:
            after.append(line.text)
            continue
        after += before[at : line.number - 1]
        at = line.number
        if at > len(before) or before[at - 1] != line.text:
            return None
        after += [line.text] if line.mark == " " else []
    return "\n".join([*after, *before[at:]])
