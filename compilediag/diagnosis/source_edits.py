"""Apply the edits of changes to the text of a source file, and compile it with the line numbers of the original."""

from __future__ import annotations

import ast
import bisect
import difflib
import itertools
import re
import textwrap
import types
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from ..errors import CompilediagError
from ..formatting import format_line, format_place
from .change import Edit

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n|\Z)")
_TOKEN = re.compile(r"\w+|\s+|.", re.S)


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
    """Apply edits of one file to its text. EditError if one of them does not fit the text."""
    edited, edits = _SourceText(source), list(edits)
    imports = dict.fromkeys(edit.imports for edit in edits if edit.imports)
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
        compile(result.text, "<edited>", "exec", ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    except (SyntaxError, ValueError) as error:
        raise EditError(f"the changed code is not valid Python: {error}") from None
    return result


class _SourceText:
    """The text of a file with its syntax tree and the places in it."""

    def __init__(self, source: str):
        self.text = source
        # The pattern matches once more at the end, with an empty line.
        self._starts = [match.start() for match in _LINE.finditer(source)]
        try:
            self._tree = compile(
                source, "<source>", "exec", ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True
            )
        except (SyntaxError, ValueError) as error:
            raise EditError(f"the file is not valid Python: {error}") from None

    def find_line(self, offset: int) -> int:
        """The number of the line at an offset, from 1 on."""
        return bisect.bisect_right(self._starts, offset)

    def _find_offset(self, line: int, column: int) -> int:
        """The offset of a place in the syntax tree, where columns count UTF-8 bytes."""
        start = self._starts[line - 1]
        rest = self.text[start : self._starts[line] if line < len(self._starts) else None]
        return start + len(rest.encode()[:column].decode(errors="ignore"))

    def _find_span(self, node: ast.stmt | ast.expr) -> tuple[int, int]:
        end_line, end_column = node.end_lineno or node.lineno, node.end_col_offset or 0
        return self._find_offset(node.lineno, node.col_offset), self._find_offset(end_line, end_column)

    def find_splices(self, edit: Edit) -> Iterator[_Splice]:
        """The splices that make one edit."""
        statement = self._find_statement(edit)
        if edit.kind == "insert_before":
            yield self._insert(edit, statement)
        else:
            yield from self._replace(edit, statement)

    def insert_import(self, statement: str) -> _Splice:
        """The splice that puts an import below those at the top; it is empty if the file has it."""
        last = find_last_import(self._tree)
        start = self._starts[min(last, len(self._starts) - 1)]
        is_known = any(ast.unparse(node) == statement for node in self._tree.body)
        return _Splice(start, start, "" if is_known else f"{statement}\n", True)

    def _find_statement(self, edit: Edit) -> ast.stmt:
        """The innermost statement at the line of an edit. EditError if the line has other code."""
        around = [
            node for node in ast.walk(self._tree) if isinstance(node, ast.stmt) and edit.line in _list_lines(node)
        ]
        if not around:
            raise EditError(f"{_place(edit)} has no code")
        line = self._get_line(edit.line)
        innermost = sorted(around, key=lambda node: (len(_list_lines(node)), len(self._get_header(node))))
        fitting = [node for node in innermost if _squeeze(edit.old) in _squeeze(self._get_header(node))]
        if fitting:
            return fitting[0]
        if _squeeze(edit.old) not in _squeeze(line):
            raise EditError(f"{_place(edit)} is `{format_line(line, 80)}`, not `{format_line(edit.old, 80)}`")
        if sum(_list_lines(node) == _list_lines(innermost[0]) for node in around) > 1:
            raise EditError(f"{_place(edit)} has several statements; put each on a line of its own")
        return innermost[0]

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
        line, column = _find_start(statement)
        start, offset = self._starts[line - 1], self._find_offset(line, column)
        before = self.text[start:offset]
        new = textwrap.dedent(edit.new).strip("\n")
        if not before.strip(" \t\f"):
            if self.text.startswith("elif", offset):
                raise EditError(f"{_place(edit)}: no line can be put before `elif`")
            return _Splice(start, start, textwrap.indent(new, before) + "\n", True)
        if before.strip() == "@":
            return _Splice(start, start, textwrap.indent(new, before.partition("@")[0]) + "\n", True)
        return _Splice(offset, offset, "; ".join(new.splitlines()) + "; ", True)

    def _replace(self, edit: Edit, statement: ast.stmt) -> Iterator[_Splice]:
        for start, end in self._find_spans(edit, statement):
            yield from _compare(start, self.text[start:end], edit.new)

    def _find_spans(self, edit: Edit, statement: ast.stmt) -> list[tuple[int, int]]:
        """Where a statement has the replaced code: those in the line itself if there are any, else all."""
        wanted = _dump(edit.old)
        limit = self._find_body(statement) or len(self.text)
        nodes = [node for node in _list_code(statement) if _dump_node(node) == wanted]
        spans = [(self._find_span(node), node.lineno) for node in nodes]
        spans = [(span, line) for span, line in spans if span[1] <= limit]
        if not spans:
            begin, end = self._starts[_find_start(statement)[0] - 1], self._find_span(statement)[1]
            pattern = re.compile(rf"(?<!\w){re.escape(edit.old.strip())}(?!\w)")
            matches = pattern.finditer(self.text, begin, min(end, limit))
            spans = [(match.span(), self.find_line(match.start())) for match in matches]
        if not spans:
            raise EditError(f"{_place(edit)} does not have `{format_line(edit.old, 80)}`")
        return [span for span, line in spans if line == edit.line] or [span for span, _ in spans]

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


def _list_code(statement: ast.stmt) -> Iterator[ast.stmt | ast.expr]:
    """The statements in a statement, itself first, and the expressions that are read: targets of assignments stay."""
    for node in ast.walk(statement):
        is_read = isinstance(getattr(node, "ctx", None), (ast.Load, type(None)))
        if isinstance(node, ast.stmt) or (isinstance(node, ast.expr) and is_read):
            yield node


def _dump(code: str) -> str | None:
    """The syntax tree of an expression or a statement as text; None if it is neither."""
    try:
        tree = ast.parse(textwrap.dedent(code).strip())
    except (SyntaxError, ValueError):
        return None
    return _dump_node(tree.body[0]) if len(tree.body) == 1 else None


def _dump_node(node: ast.AST) -> str:
    return ast.dump(node.value if isinstance(node, ast.Expr) else node)


def _compare(start: int, old: str, new: str) -> Iterator[_Splice]:
    """The parts of `old`, which begins at `start`, that differ in `new`: so two edits of one call can be joined.

    White space stays as it is.
    """
    before, after = _TOKEN.findall(old), _TOKEN.findall(new)
    offsets = [start]
    for token in before:
        offsets.append(offsets[-1] + len(token))
    for kind, a, b, c, d in difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        removed, added = "".join(before[a:b]), "".join(after[c:d])
        if kind != "equal" and (removed.strip() or added.strip()):
            yield _Splice(offsets[a], offsets[b], added, False)


def _squeeze(text: str) -> str:
    """Code without white space: recorded lines have no indentation, and calls may be over several lines."""
    return "".join(text.split())


def _place(edit: Edit) -> str:
    return format_place(edit.file, edit.line)
