"""A plan as a unified diff of the user's files."""

from __future__ import annotations

import ast
import difflib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from ...errors import CompilediagError
from ...files import find_working_folder
from ...source_files import SourceReader, split_lines
from ..evidence import group_by
from ..inserted_code import is_only_inserted
from ..source_edits import IMPORT_TORCH, apply_edits, find_last_import, imports_torch
from .plan_text import format_settings

if TYPE_CHECKING:
    from .plan import Plan, PlanStep


def make_patch(plan: Plan) -> str | None:
    """The diff of all files that the plan changes; None if one of them is not the file that was recorded any more.

    Settings are put below the imports of the first file. A step that only a person can follow is not in it.
    """
    edits = group_by((edit for step in plan.steps for edit in step.edits), lambda edit: edit.file)
    reader = SourceReader(plan.is_own)
    places = (step for step in plan.steps if step.settings and step.file and _is_unchanged(step, reader))
    files = list(edits) or [step.file for step in places if step.file][:1]
    if not files:
        return None
    try:
        texts = {file: reader.read(file) for file in files}
        changed = {file: apply_edits(text, edits.get(file, [])).text for file, text in texts.items()}
        changed[files[0]] = insert_settings(changed[files[0]], format_settings(plan.settings))
        if not all(is_only_inserted(ast.parse(text), ast.parse(changed[file])) for file, text in texts.items()):
            return None
    except (CompilediagError, SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    return "".join(_format_diff(texts, changed)) or None


def _is_unchanged(step: PlanStep, reader: SourceReader) -> bool:
    """True if the whole line of a step is the recorded one: a session from elsewhere may name any file."""
    if step.line is None or step.line < 1 or not step.code:
        return False
    lines = split_lines(reader.find(step.file or "") or "")
    return [line.strip() for line in lines[step.line - 1 : step.line]] == [step.code.strip()]


def insert_settings(text: str, settings: str) -> str:
    """The text of a file with settings below its imports."""
    if not settings:
        return text
    return _insert_below_imports(text, settings if imports_torch(ast.parse(text)) else f"{IMPORT_TORCH}\n\n{settings}")


def _insert_below_imports(text: str, lines: str) -> str:
    """Put lines below the imports at the top of a module, or below its docstring."""
    last = find_last_import(ast.parse(text))
    whole = split_lines(text)
    end = "\r\n" if whole and whole[0].endswith("\r\n") else "\n"
    block = "".join(line + end for line in lines.splitlines())
    if last and not whole[last - 1].endswith(("\n", "\r")):
        whole[last - 1] += end
    return "".join([*whole[:last], block, *whole[last:]])


def _format_diff(texts: Mapping[str, str], changed: Mapping[str, str]) -> Iterator[str]:
    for file, text in texts.items():
        name = _name_in_patch(file)
        before, after = (split_lines(one) for one in (text, changed[file]))
        for line in difflib.unified_diff(before, after, f"a/{name}", f"b/{name}"):
            yield line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"


def _name_in_patch(file: str) -> str:
    """The path from the current folder if the file is below it, for `git apply` and `patch -p1`."""
    here, path = find_working_folder(), Path(file)
    if here is not None and (path := path.absolute()).is_relative_to(here):
        return path.relative_to(here).as_posix()
    return path.as_posix().lstrip("/")
