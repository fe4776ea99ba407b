"""A plan as a unified diff of the user's files."""

from __future__ import annotations

import ast
import difflib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from ...files import find_working_folder
from ...source_files import read_source
from ..change import Edit
from ..evidence import group_by
from ..source_edits import EditError, apply_edits, find_last_import
from .plan_text import format_settings

if TYPE_CHECKING:
    from .plan import Plan, PlanStep

_IMPORT = "import torch"


def make_patch(plan: Plan) -> str | None:
    """The diff of all files that the plan changes; None if one of them is not the file that was recorded any more.

    Settings are put below the imports of the first file. A step that only a person can follow is not in it.
    """
    edits = group_by((edit for step in plan.steps for edit in step.edits), lambda edit: edit.file)
    files = list(edits) or [step.file for step in plan.steps if step.settings and step.file and _is_unchanged(step)][:1]
    if not files:
        return None
    try:
        texts = {file: _read(file) for file in files}
        changed = {file: change_text(text, edits.get(file, [])) for file, text in texts.items()}
    except (EditError, OSError, UnicodeDecodeError, SyntaxError, ValueError):
        return None
    changed[files[0]] = insert_settings(changed[files[0]], format_settings(plan.settings))
    return "".join(_format_diff(texts, changed)) or None


def _is_unchanged(step: PlanStep) -> bool:
    """True if the line of a step has the code that was recorded: a session from elsewhere may name any file."""
    if step.line is None or step.line < 1 or not step.code:
        return False
    lines = (read_source(step.file or "") or "").splitlines()
    return [line.strip() for line in lines[step.line - 1 : step.line]] == [step.code.strip()]


def _read(file: str) -> str:
    text = read_source(file)
    if text is None:
        raise OSError(f"{file} can't be read")
    return text


def change_text(text: str, edits: list[Edit]) -> str:
    """The text of a file with the edits applied, and `import torch` if they need it. EditError if they don't fit."""
    changed = apply_edits(text, edits).text
    needs_torch = any("torch." in edit.new for edit in edits) and not imports_torch(text)
    return _insert_below_imports(changed, _IMPORT) if needs_torch else changed


def insert_settings(text: str, settings: str) -> str:
    """The text of a file with settings below its imports."""
    if not settings:
        return text
    return _insert_below_imports(text, settings if imports_torch(text) else f"{_IMPORT}\n\n{settings}")


def imports_torch(text: str) -> bool:
    """True if the module binds the name `torch` at its top."""
    imports = (node for node in ast.parse(text).body if isinstance(node, ast.Import))
    names = (alias.asname or alias.name.partition(".")[0] for node in imports for alias in node.names)
    return "torch" in names


def _insert_below_imports(text: str, lines: str) -> str:
    """Put lines below the imports at the top of a module, or below its docstring."""
    last = find_last_import(ast.parse(text))
    whole = text.splitlines(keepends=True)
    end = "\r\n" if whole and whole[0].endswith("\r\n") else "\n"
    block = "".join(line + end for line in lines.splitlines())
    if last and not whole[last - 1].endswith(("\n", "\r")):
        whole[last - 1] += end
    return "".join([*whole[:last], block, *whole[last:]])


def _format_diff(texts: Mapping[str, str], changed: Mapping[str, str]) -> Iterator[str]:
    for file, text in texts.items():
        name = _name_in_patch(file)
        before, after = (one.splitlines(keepends=True) for one in (text, changed[file]))
        for line in difflib.unified_diff(before, after, f"a/{name}", f"b/{name}"):
            yield line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"


def _name_in_patch(file: str) -> str:
    """The path from the current folder if the file is below it, for `git apply` and `patch -p1`."""
    here, path = find_working_folder(), Path(file)
    if here is not None and (path := path.absolute()).is_relative_to(here):
        return path.relative_to(here).as_posix()
    return path.as_posix().lstrip("/")
