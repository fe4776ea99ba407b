"""Runs functions of this process with edits of their source: their code is exchanged for a block, and restored."""

from __future__ import annotations

import ast
import contextlib
import gc
import linecache
import tokenize
import types
from collections.abc import Iterable, Iterator, Sequence

from ..diagnosis.change import Edit
from ..diagnosis.plan.patching import imports_torch
from ..diagnosis.source_edits import EditedSource, EditError, apply_edits
from ..errors import CompilediagError
from ..formatting import format_place
from ..notebook_cells import CellNames


def group_by_file(edits: Iterable[Edit]) -> dict[str, tuple[Edit, ...]]:
    """The edits of each file."""
    edits = tuple(edits)
    return {file: tuple(edit for edit in edits if edit.file == file) for file in dict.fromkeys(e.file for e in edits)}


def edit_file(file: str, edits: Sequence[Edit]) -> EditedSource:
    """The text of a file with edits applied. EditError if it cannot be read or an edit does not fit."""
    try:
        with tokenize.open(file) as stream:
            source = stream.read()
    except (OSError, SyntaxError, ValueError) as error:
        raise EditError(f"{file} cannot be read: {getattr(error, 'strerror', None) or error}") from None
    return apply_edits(source, [*_import_torch(source, file, edits), *edits])


def _import_torch(source: str, file: str, edits: Iterable[Edit]) -> Iterator[Edit]:
    """An edit that imports torch at the top of a file, if its edits need torch and it does not import it."""
    if not any("torch." in edit.new for edit in edits) or imports_torch(source):
        return
    for statement in ast.parse(source).body:
        is_text = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
        if not is_text and getattr(statement, "module", None) != "__future__":
            line = source.splitlines()[statement.lineno - 1]
            yield Edit(file, statement.lineno, "insert_before", line, "import torch")
            return


@contextlib.contextmanager
def edit_functions(edits: Iterable[Edit]) -> Iterator[None]:
    """In the block, the functions of this process run the edited code. The line numbers stay the same.

    CompilediagError if an edit does not fit the source, or is at a place that no function of this process runs.
    """
    import torch

    kept: list[tuple[types.FunctionType, types.CodeType]] = []
    lacking: list[dict[str, object]] = []
    try:
        for file, own in group_by_file(edits).items():
            for function, code in _find_exchanges(file, own):
                kept.append((function, function.__code__))
                function.__code__ = code
                # The edits may need torch where it was not imported.
                if "torch" not in function.__globals__:
                    function.__globals__["torch"] = torch
                    lacking.append(function.__globals__)
        yield
    finally:
        for function, code in reversed(kept):
            function.__code__ = code
        for variables in lacking:
            variables.pop("torch", None)


def _find_exchanges(file: str, edits: tuple[Edit, ...]) -> list[tuple[types.FunctionType, types.CodeType]]:
    """Each function whose code the edits change, with its new code. A cell that ran twice has two sources."""
    functions = _list_functions(file)
    found = [
        pair
        for actual in dict.fromkeys(function.__code__.co_filename for function in functions)
        for pair in _edit_source(actual, [f for f in functions if f.__code__.co_filename == actual], edits)
    ]
    for edit in edits:
        if not any(edit.line in _list_lines(code) for _, code in found):
            place = format_place(edit.file, edit.line)
            raise CompilediagError(f"{place} is not in a function that the workload can run again with the change")
    misfit = next((function for function, code in found if code.co_freevars != function.__code__.co_freevars), None)
    if misfit is not None:
        raise CompilediagError(f"the change of {misfit.__qualname__} uses other variables of the function around it")
    return found


def _edit_source(
    actual: str, functions: list[types.FunctionType], edits: tuple[Edit, ...]
) -> Iterator[tuple[types.FunctionType, types.CodeType]]:
    """The functions of one source whose code the edits change, each with its new code."""
    source = "".join(linecache.getlines(actual))
    edited = {_make_key(code): code for code in _list_codes(apply_edits(source, edits).compile(actual))}
    for function in functions:
        code = edited.get(_make_key(function.__code__))
        if code is not None and code != function.__code__:
            yield function, code


def _list_functions(file: str) -> list[types.FunctionType]:
    """The functions of this process whose code is in a file or a notebook cell."""
    name = CellNames().name
    functions = [found for found in gc.get_objects() if type(found) is types.FunctionType]
    return [function for function in functions if name(function.__code__.co_filename) == file]


def _list_codes(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _list_codes(constant)


def _make_key(code: types.CodeType) -> tuple[str, int]:
    """What a code object and its edited version have in common. Line numbers are those of the original file."""
    return code.co_qualname, code.co_firstlineno


def _list_lines(code: types.CodeType) -> set[int]:
    """The lines of a code object and of the functions in it."""
    return {line for inner in _list_codes(code) for *_, line in inner.co_lines() if line is not None}
