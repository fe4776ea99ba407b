"""Applies changes to a copy of a program's source, as a user would: replacements, edits, settings, patches."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Sequence
from typing import Any

from compilediag.diagnosis import Edit, source_edits

_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")


class CannotApply(Exception):
    """A change does not fit the source."""


def replace_texts(source: str, change: Iterable[tuple[str, str]]) -> str:
    """Replace texts that each occur once."""
    for old, new in change:
        if source.count(old) != 1:
            raise CannotApply(f"{old!r} occurs {source.count(old)}x")
        source = source.replace(old, new)
    return source


def insert_setup(source: str, code: str) -> str:
    """Put statements after the imports at the top, where a user pastes a block of settings, with `import torch`."""
    if not code.strip():
        return source
    code = code if source_edits.imports_torch(ast.parse(source)) else f"import torch\n\n{code}"
    lines, last = source.splitlines(keepends=True), 0
    for node in ast.parse(source).body:
        is_docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if not isinstance(node, (ast.Import, ast.ImportFrom)) and not is_docstring:
            break
        last = node.end_lineno or 0
    return "".join([*lines[:last], "\n" if last else "", code.rstrip("\n") + "\n", *lines[last:]])


class _OptionSetter(ast.NodeTransformer):
    """Gives an option to each torch.compile of a module."""

    def __init__(self, name: str, value: bool | None):
        self.keyword = ast.keyword(name, ast.Constant(value))

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if _is_compile(node.func):
            others = [keyword for keyword in node.keywords if keyword.arg != self.keyword.arg]
            node.keywords = [*others, self.keyword]
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        self.generic_visit(node)
        node.decorator_list = [
            ast.Call(decorator, [], [self.keyword]) if _is_compile(decorator) else decorator
            for decorator in node.decorator_list
        ]
        return node


def _is_compile(node: ast.expr) -> bool:
    """True for `torch.compile` and `module.compile`."""
    return isinstance(node, ast.Attribute) and node.attr == "compile"


def set_compile_option(source: str, name: str, value: bool | None) -> str:
    """Give an option to each torch.compile of a program."""
    tree = _OptionSetter(name, value).visit(ast.parse(source))
    return ast.unparse(ast.fix_missing_locations(tree)) + "\n"


def apply_edits(source: str, edits: Sequence[dict[str, Any]], file: str) -> str:
    """Apply edits, given as dicts, as `compilediag try` and a plan's patch do."""
    foreign = [edit["file"] for edit in edits if edit["file"] != file]
    if foreign:
        raise CannotApply(f"an edit of {foreign[0]}")
    try:
        return source_edits.apply_edits(source, [Edit(**edit) for edit in edits]).text
    except source_edits.EditError as problem:
        raise CannotApply(str(problem)) from problem


def apply_patch(source: str, patch: str) -> str:
    """Apply a unified diff of one file strictly: every context line has to be where the diff says."""
    old, new, position = source.splitlines(keepends=True), [], 0
    lines = [line for line in patch.splitlines(keepends=True) if not line.startswith(("---", "+++", "\\"))]
    for line in lines:
        if hunk := _HUNK.match(line):
            start = int(hunk[1]) - (0 if hunk[2] == "0" else 1)
            new += old[position:start]
            position = start
        elif line[:1] in (" ", "-"):
            if position >= len(old) or old[position].rstrip("\n") != line[1:].rstrip("\n"):
                raise CannotApply(f"the patch expects {line[1:]!r} at line {position + 1}")
            if line[0] == " ":
                new.append(old[position])
            position += 1
        elif line[:1] == "+":
            new.append(line[1:])
    return "".join([*new, *old[position:]])
