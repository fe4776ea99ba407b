"""Apply the edits of changes to the text of a source file, and compile it with the line numbers of the original."""

from __future__ import annotations

import ast
import bisect
import itertools
import re
import textwrap
import types
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from ..errors import CompilediagError
from ..formatting import format_line, format_place
from .change import Edit
from .inserted_code import find_form, get_new_option, is_known_code, is_only_inserted

IMPORT_TORCH = "import torch"
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n|\Z)")


class EditError(CompilediagError):
    """An edit cannot be applied: the file was changed since, or two edits want the same text."""


@dataclass(frozen=True)
class EditedSource:
    """The text of a file with edits applied. `lines` has, for each of its lines, the line in the original file."""

    text: str
    lines: tuple[int, ...]

    def compile(self, file: str, flags: int = 0) -> types.CodeType:
        """Compile it under the name of the original file; tracebacks show the lines of the original file."""
        code: types.CodeType = compile(self.parse(file, flags), file, "exec", flags, dont_inherit=True)
        return code

    def parse(self, file: str, flags: int = 0) -> ast.Module:
        """Parse it; the nodes have the lines of the original file."""
        tree: ast.Module = compile(self.text, file, "exec", flags | ast.PyCF_ONLY_AST, dont_inherit=True)
        for node in ast.walk(tree):
            self._move(node)
        return tree

    def _move(self, node: ast.AST) -> None:
        """Give a node the lines of the original file."""
        if not isinstance(node, (ast.stmt, ast.expr, ast.excepthandler, ast.arg, ast.keyword, ast.alias, ast.pattern)):
            return
        end = node.end_lineno or node.lineno
        node.lineno, node.end_lineno = (self.lines[min(line, len(self.lines)) - 1] for line in (node.lineno, end))
        if node.lineno == node.end_lineno and (node.end_col_offset or 0) < node.col_offset:
            node.end_col_offset = node.col_offset


@dataclass(frozen=True, order=True)
class _Splice:
    """Text that replaces a part of the source. Several lines (`is_line`) may be put at the same place."""

    start: int
    end: int
    new: str
    is_line: bool


def apply_edits(source: str, edits: Iterable[Edit]) -> EditedSource:
    """Apply edits of one file to its text; `import torch` is added where it is needed.

    EditError if one of them does not fit the text, or is not one that compilediag makes: the result is the same program
    but for code that has one of the forms of `inserted_code`.
    """
    try:
        return _apply_edits(source, [*edits])
    except RecursionError:
        raise EditError("the code of the file is nested too deeply") from None


def _apply_edits(source: str, edits: Sequence[Edit]) -> EditedSource:
    edited = _SourceText(source)
    imports = dict.fromkeys(edit.imports for edit in edits if edit.imports)
    if any("torch." in edit.new for edit in edits) and not imports_torch(edited.tree):
        imports = {IMPORT_TORCH: None, **imports}
    # Two steps may need the same line, so equal splices are one.
    own = (splice for edit in edits for splice in edited.find_splices(edit))
    found = dict.fromkeys([*map(edited.insert_import, imports), *own])
    splices = sorted(found, key=lambda splice: (splice.start, splice.end))
    for one, other in itertools.pairwise(splices):
        is_same_place = one.start == other.start and not (one.is_line or other.is_line)
        if other.start < one.end or is_same_place:
            raise EditError(f"two changes replace the same code in line {edited.find_line(other.start)}")
    result = edited.splice(splices)
    try:
        tree = _parse(result.text)
    except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
        raise EditError(f"the changed code is not valid Python: {error}") from None
    if not is_only_inserted(_parse(source), tree):
        raise EditError("the changes would do more to the file than they say")
    return result


def _parse(text: str) -> ast.Module:
    """The syntax tree of a file or of a notebook cell."""
    flags = ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    tree: ast.Module = compile(text, "<source>", "exec", flags, dont_inherit=True)
    return tree


class _SourceText:
    """The text of a file with its syntax tree and the places in it."""

    def __init__(self, source: str):
        self.text = source
        # The pattern matches once more at the end, with an empty line.
        self._starts = [match.start() for match in _LINE.finditer(source)]
        try:
            self.tree = _parse(source)
        except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
            raise EditError(f"the file is not valid Python: {error}") from None

    def find_line(self, offset: int) -> int:
        """The number of the line at an offset, from 1 on."""
        return bisect.bisect_right(self._starts, offset)

    def _find_offset(self, line: int, column: int) -> int:
        """The offset of a place in the syntax tree, where columns count UTF-8 bytes."""
        start = self._starts[line - 1]
        rest = self.text[start : self._starts[line] if line < len(self._starts) else None]
        return start + len(rest.encode()[:column].decode(errors="ignore"))

    def _find_span(self, node: ast.stmt | ast.expr | ast.keyword) -> tuple[int, int]:
        end_line, end_column = node.end_lineno or node.lineno, node.end_col_offset or 0
        return self._find_offset(node.lineno, node.col_offset), self._find_offset(end_line, end_column)

    def find_splices(self, edit: Edit) -> Iterator[_Splice]:
        """The splices that make one edit."""
        self._check_line(edit)
        statement = self._find_statement(edit)
        if edit.kind == "insert_before":
            yield self._insert(edit, statement)
        else:
            yield from self._replace(edit, statement)

    def insert_import(self, statement: str) -> _Splice:
        """The splice that puts an import below those at the top; it is empty if the file has it."""
        last = find_last_import(self.tree)
        start = self._starts[min(last, len(self._starts) - 1)]
        if not is_known_code(statement):
            raise EditError(f"`{format_line(statement, 80)}` is not an import that compilediag adds")
        is_known = any(ast.unparse(node) == statement for node in self.tree.body)
        return _Splice(start, start, "" if is_known else f"{statement}\n", True)

    def _find_statement(self, edit: Edit) -> ast.stmt:
        """The innermost statement at the line of an edit. EditError if the line has other code."""
        around = [node for node in ast.walk(self.tree) if isinstance(node, ast.stmt) and edit.line in _list_lines(node)]
        if not around:
            raise EditError(f"{_place(edit)} has no code")
        innermost = sorted(around, key=lambda node: (len(_list_lines(node)), len(self._get_header(node))))
        wanted = _squeeze(edit.call or edit.old)
        fitting = [node for node in innermost if wanted in _squeeze(self._get_header(node))]
        if fitting:
            return fitting[0]
        if sum(_list_lines(node) == _list_lines(innermost[0]) for node in around) > 1:
            raise EditError(f"{_place(edit)} has several statements; put each on a line of its own")
        return innermost[0]

    def _check_line(self, edit: Edit) -> None:
        """EditError unless the line is the whole recorded one. What the file has instead is not shown: a session from
        elsewhere may name any file.
        """
        if not 1 <= edit.line <= len(self._starts):
            raise EditError(f"{_place(edit)} has no code")
        if not edit.code.strip() or self._get_line(edit.line).strip() != edit.code.strip():
            raise EditError(f"{_place(edit)} is no longer `{format_line(edit.code, 80)}`: the file was changed since")

    def _get_line(self, line: int) -> str:
        return self.text[self._starts[line - 1] : self._starts[line] if line < len(self._starts) else None]

    def _get_header(self, node: ast.stmt) -> str:
        """The text of a statement without its body, unless that begins on the same line."""
        (start, end), body = self._find_span(node), self._find_body(node)
        if body is None or self.text[start:body].rpartition("\n")[2].strip():
            return self.text[start:end]
        return self.text[start:body]

    def _find_body(self, node: ast.stmt) -> int | None:
        """Where the body of a statement begins; None if it has none."""
        body = getattr(node, "body", None) or getattr(node, "cases", None)
        first = body[0] if isinstance(body, list) and body else None
        if isinstance(first, ast.match_case):
            first = first.pattern
        if not isinstance(first, (ast.stmt, ast.pattern)):
            return None
        return self._find_offset(first.lineno, first.col_offset)

    def _insert(self, edit: Edit, statement: ast.stmt) -> _Splice:
        if not is_known_code(edit.new):
            raise EditError(f"{_place(edit)}: the code to insert is not a change that compilediag makes")
        line, column = _find_start(statement)
        start, offset = self._starts[line - 1], self._find_offset(line, column)
        before = self.text[start:offset]
        if self.text.startswith("elif", offset):
            raise EditError(f"{_place(edit)}: no line can be put before `elif`")
        if before.strip(" \t\f") not in ("", "@"):
            raise EditError(f"{_place(edit)} has several statements; put each on a line of its own")
        return _Splice(start, start, textwrap.indent(edit.new, before.partition("@")[0]) + "\n", True)

    def _replace(self, edit: Edit, statement: ast.stmt) -> Iterator[_Splice]:
        found = [*(self._replace_argument(edit, statement) if edit.call else self._extend_decorator(edit, statement))]
        if not found:
            raise EditError(f"{_place(edit)} does not have `{format_line(edit.call or edit.old, 80)}`")
        own = [splice for splice in found if self.find_line(splice.start) == edit.line]
        yield from own or found

    def _replace_argument(self, edit: Edit, statement: ast.stmt) -> Iterator[_Splice]:
        """The argument of a call in one of the forms, made of the text that the file itself has there."""
        form = find_form(edit.old, edit.new)
        if form is None:
            raise EditError(f"{_place(edit)}: the new argument is not a change that compilediag makes")
        call, argument = _dump(edit.call), _dump(edit.old)
        limit = self._find_body(statement) or len(self.text)
        calls = (node for node in ast.walk(statement) if isinstance(node, ast.Call))
        for node in (node for node in calls if ast.dump(node) == call):
            values: list[ast.expr] = [*node.args, *(keyword.value for keyword in node.keywords)]
            spans = [self._find_span(value) for value in values if ast.dump(value) == argument]
            yield from (_Splice(a, b, form.format(self.text[a:b]), False) for a, b in spans if b <= limit)

    def _extend_decorator(self, edit: Edit, statement: ast.stmt) -> Iterator[_Splice]:
        """`@torch.compile` with a specification as one more option."""
        option = get_new_option(edit.old, edit.new)
        if option is None:
            raise EditError(f"{_place(edit)}: the new decorator is not a change that compilediag makes")
        wanted = _dump(edit.old.removeprefix("@"))
        decorators: list[ast.expr] = getattr(statement, "decorator_list", [])
        for node in decorators:
            if ast.dump(node) == wanted:
                end = self._find_span(node)[1]
                if not isinstance(node, ast.Call):
                    yield _Splice(end, end, f"({option})", False)
                    continue
                parts: list[ast.expr | ast.keyword] = [*node.args, *node.keywords]
                last = max((self._find_span(part)[1] for part in parts), default=None)
                yield _Splice(end - 1 if last is None else last, end - 1, f"{', ' if last else ''}{option}", False)

    def splice(self, splices: Sequence[_Splice]) -> EditedSource:
        """The text with all splices made."""
        text, origins, at = "", [1], 0
        for splice in splices:
            text, origins = _append(text, origins, self.text[at : splice.start], self._list_origins(at, splice.start))
            new = splice.new.count("\n")
            line = self.find_line(splice.start)
            text, origins = _append(text, origins, splice.new, [line] * (new + 1))
            at = splice.end
        text, origins = _append(text, origins, self.text[at:], self._list_origins(at, len(self.text)))
        return EditedSource(text, tuple(origins))

    def _list_origins(self, start: int, end: int) -> list[int]:
        return list(range(self.find_line(start), self.find_line(end) + 1))


def imports_torch(tree: ast.Module) -> bool:
    """True if a module binds the name `torch` at its top."""
    imports = (node for node in tree.body if isinstance(node, ast.Import))
    names = (alias.asname or alias.name.partition(".")[0] for node in imports for alias in node.names)
    return "torch" in names


def find_last_import(tree: ast.Module) -> int:
    """The number of the last line of the imports, or of the docstring, at the top of a module; 0 without both."""
    last = 0
    for node in tree.body:
        is_docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if not isinstance(node, (ast.Import, ast.ImportFrom)) and not is_docstring:
            break
        last = node.end_lineno or 0
    return last


def _append(text: str, origins: list[int], new: str, lines: list[int]) -> tuple[str, list[int]]:
    """Append text whose lines come from `lines`; a line belongs to where it begins."""
    is_at_start = not text or text.endswith(("\n", "\r"))
    return text + new, [*origins[:-1], lines[0] if is_at_start else origins[-1], *lines[1:]]


def _list_lines(node: ast.stmt) -> range:
    return range(_find_start(node)[0], (node.end_lineno or node.lineno) + 1)


def _find_start(node: ast.stmt) -> tuple[int, int]:
    """Line and column of a statement, with its decorators."""
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    first: ast.stmt | ast.expr = decorators[0] if decorators else node
    return first.lineno, first.col_offset


def _dump(code: str) -> str | None:
    """The syntax tree of exactly one expression as text; None for anything else."""
    try:
        return ast.dump(ast.parse(f"({code.strip()}\n)", mode="eval").body)
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return None


def _squeeze(text: str) -> str:
    """Code without white space: recorded lines have no indentation, and calls may be over several lines."""
    return "".join(text.split())


def _place(edit: Edit) -> str:
    return format_place(edit.file, edit.line)
