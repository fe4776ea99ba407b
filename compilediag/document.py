"""Documents: what a plan, a summary or a comparison says, as blocks that are written as text, HTML or Markdown.

A writer gets any block; a paragraph may be a plain `str`, in which code stands between backticks. `shorten` makes a
smaller document of a document, and `fit` the largest one that a writer brings below a number of bytes. Texts of the
user's program can be in every block: no writer lets them become markup, and what a terminal would obey is escaped.
"""

from __future__ import annotations

import re
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from html import escape
from itertools import pairwise
from typing import Literal, TypeAlias

from .formatting import escape_lines, format_line

#: Columns of plain text.
WIDTH = 100
#: Bytes of the HTML that a notebook stores for one value.
MAX_HTML = 50_000
#: Items of each list, and characters of each text and block of code. `fit` tries one after the other.
LIMITS = ((None, None), (100, 4_000), (40, 4_000), (20, 4_000), (8, 4_000), (3, 400), (0, 400))
#: Where torch explains a graph break by its number. Of all addresses, only these become links in Markdown.
BREAK_PAGE = "https://meta-pytorch.github.io/compile-graph-break-site/gb/"


# Parts of a line


@dataclass(frozen=True)
class Code:
    """Code within a line."""

    text: str


@dataclass(frozen=True)
class Place:
    """A place in a file, `train.py:28`."""

    text: str


Part: TypeAlias = str | Code | Place


class Para:
    """A paragraph of several parts."""

    def __init__(self, *parts: Part, strong: bool = False):
        self.parts = parts
        self.is_strong = strong


# Blocks


@dataclass(frozen=True)
class CodeBlock:
    """Lines of code below a title. `instead`: an expression that gives them, for documents that have no space."""

    code: str
    title: str = ""
    instead: str = ""


class Lines:
    """Blocks that belong together, one below the other."""

    def __init__(self, *blocks: Block):
        self.blocks = blocks


@dataclass(frozen=True)
class Items:
    """A list; each item is one or more blocks, of which the first is a paragraph unless the list is "plain".

    Items of the kind "plain" have no mark; those of "indented" have none in plain text. `hidden` items are left out at
    the end, and `rest` says where they are.
    """

    items: Sequence[Sequence[Block]]
    kind: Literal["numbered", "bulleted", "indented", "plain"] = "bulleted"
    rest: tuple[Part, ...] = ()
    hidden: int = 0


@dataclass(frozen=True)
class Table:
    """Rows of cells below a head. The columns whose numbers are in `right` are numbers."""

    head: Sequence[str]
    rows: Sequence[Sequence[str | Para]]
    right: tuple[int, ...] = ()
    rest: tuple[Part, ...] = ()
    hidden: int = 0


@dataclass(frozen=True)
class Drawing:
    """What only HTML shows. `draw` makes it with so many rows."""

    draw: Callable[[int], str]
    rows: int = 12


class Section:
    """Blocks with a distance to what is before and after them, and a title where it needs one."""

    def __init__(self, *blocks: Block, title: str = ""):
        self.blocks = blocks
        self.title = title


Block: TypeAlias = "str | Para | CodeBlock | Lines | Items | Table | Drawing | Section"


def to_parts(block: str | Para) -> tuple[Part, ...]:
    """The parts of a paragraph."""
    return (block,) if isinstance(block, str) else block.parts


def count_rest(block: Items | Table) -> list[Para]:
    """`... and 3 more in session.plan()`, if something is left out."""
    return [Para(f"... and {block.hidden:,} more", *block.rest)] if block.hidden else []


# Limits


def shorten(block: Block, items: int | None, chars: int | None) -> Block:
    """The block with at most so many items in each list, and characters in each text."""
    match block:
        case str():
            return _clip(block, chars)
        case Para():
            parts = [p if isinstance(p, Place) else _clip_part(p, chars) for p in block.parts]
            return Para(*parts, strong=block.is_strong)
        case CodeBlock():
            if chars is None or len(block.code) <= chars:
                return block
            if block.instead:
                return Para(f"{block.title} ".lstrip(), Code(block.instead))
            lines = block.code[:chars].splitlines()
            return replace(block, code="\n".join([*(lines[:-1] or lines), "# ..."]))
        case Lines():
            return Lines(*(shorten(each, items, chars) for each in block.blocks))
        case Section():
            return Section(*(shorten(each, items, chars) for each in block.blocks), title=block.title)
        case Items():
            kept = shorten_items(block, items)
            return replace(kept, items=[[shorten(each, items, chars) for each in item] for item in kept.items])
        case Table():
            rows = block.rows[:items]
            return replace(block, rows=rows, hidden=block.hidden + len(block.rows) - len(rows))
        case Drawing():
            return block if items is None else replace(block, rows=min(block.rows, 2 + items // 2))


def shorten_items(block: Items, items: int | None) -> Items:
    """The list with its first items; the others are counted."""
    kept = block.items[:items]
    return replace(block, items=kept, hidden=block.hidden + len(block.items) - len(kept))


def fit(document: Block, write: Callable[[Block], str], size: int, first: int = 0) -> str:
    """What `write` makes of the document with the first of LIMITS, from the number `first` on, that gives at most
    `size` bytes; of the last one if none does.
    """
    text = ""
    for items, chars in LIMITS[first:]:
        text = write(shorten(document, items, chars))
        if len(text.encode("utf-8", "replace")) <= size:
            break
    return text


def _clip(text: str, chars: int | None) -> str:
    return text if chars is None or len(text) <= chars else f"{text[:chars]}..."


def _clip_part(part: str | Code, chars: int | None) -> Part:
    return _clip(part, chars) if isinstance(part, str) else Code(_clip(part.text, chars))


# Plain text


def to_text(document: Block, width: int | None = WIDTH) -> str:
    """The document as text of at most `width` columns, without a line end at its end; lines are as long as they are if
    it is None. Only a single word, or a line of code, that is longer exceeds that.
    """
    return escape_lines("\n".join(_TextWriter(width).list_lines(document, "", "")))


def wrap(text: str, first: str = "", rest: str = "", width: int | None = WIDTH) -> list[str]:
    """Split `text` into lines of at most `width` columns. `first` and `rest` are the indents of the lines."""
    if width is None:
        return [first + " ".join(text.split())]
    return textwrap.wrap(
        text, width, initial_indent=first, subsequent_indent=rest, break_long_words=False, break_on_hyphens=False
    ) or [first.rstrip()]


def escape_unprintable(text: str, encoding: str | None = None) -> str:
    """Escape what a terminal would obey, what `encoding` (by default that of standard output) lacks, and lone
    surrogates, with backslashes.
    """
    target = encoding or getattr(sys.stdout, "encoding", None) or "utf-8"
    return escape_lines(text).encode(target, "backslashreplace").decode(target)


#: Kind of list -> the mark of an item, and the indent of its other lines.
_TEXT_MARKS = {"numbered": ("{}. ", "   "), "bulleted": ("- ", "  "), "indented": ("  ", "    "), "plain": ("", "  ")}
#: Indent of a text -> that of the code below it, if it is another one.
_CODE_INDENTS = {"": "   ", "  ": "    "}


@dataclass(frozen=True)
class _TextWriter:
    width: int | None

    def list_lines(self, block: Block, first: str, rest: str) -> list[str]:
        """The lines of a block, the first one behind `first`, the others behind `rest`."""
        match block:
            case str() | Para():
                return wrap(
                    "".join(p if isinstance(p, str) else p.text for p in to_parts(block)), first, rest, self.width
                )
            case CodeBlock():
                title = wrap(block.title, first, rest, self.width) if block.title else []
                indent = _CODE_INDENTS.get(rest, rest)
                return [*title, *(f"{indent}{line}".rstrip() for line in block.code.splitlines())]
            case Lines():
                return self._join(block.blocks, first, rest)
            case Section():
                blocks = [block.title, *block.blocks] if block.title else block.blocks
                lines: list[str] = []
                was_section = False
                for each in blocks:
                    found = self.list_lines(each, rest if lines else first, rest)
                    is_section = isinstance(each, Section)
                    if lines and found and (is_section or was_section):
                        lines.append("")
                    lines += found
                    was_section = is_section
                return lines
            case Items():
                return self._list_items(block, rest)
            case Table():
                return [*self._list_rows(block, rest), *self._join(count_rest(block), rest, rest)]
            case Drawing():
                return []

    def _join(self, blocks: Iterable[Block], first: str, rest: str) -> list[str]:
        lines: list[str] = []
        for each in blocks:
            lines += self.list_lines(each, rest if lines else first, rest)
        return lines

    def _list_items(self, block: Items, indent: str) -> list[str]:
        mark, deeper = _TEXT_MARKS[block.kind]
        is_deep = any(isinstance(each, Items) for item in block.items for each in item)
        lines: list[str] = []
        for number, item in enumerate(block.items, 1):
            lines += [""] if lines and is_deep else []
            lines += self._join(item, indent + mark.format(number), indent + deeper)
        own = indent + ("  " if block.kind == "indented" else "")
        return [*lines, *self._join(count_rest(block), own, own)]

    def _list_rows(self, table: Table, indent: str) -> Iterator[str]:
        rows = [table.head, *([" ".join(self.list_lines(cell, "", "")) for cell in row] for row in table.rows)]
        widths = [max(len(row[at]) for row in rows) for at in range(len(table.head))]
        for row in rows:
            cells = (
                cell.rjust(widths[at]) if at in table.right else cell.ljust(widths[at]) for at, cell in enumerate(row)
            )
            yield indent + "  ".join(cells).rstrip()


# HTML


def to_html(document: Block, name: str | None = None, size: int = MAX_HTML) -> str:
    """The document as HTML of at most `size` bytes, which needs neither scripts nor styles: what a notebook shows, also
    without a kernel. `name` has the classes of an element around it.

    Notebooks typeset text between dollar signs as formulas, but not in an element of these classes: the first one is
    that of MathJax 3 (JupyterLab and Notebook 7), the second one that of MathJax 2 (nbconvert).
    """
    begin, end = ("<div>", "</div>") if name is None else (f'<div class="{name}">', "</div>")

    def write(block: Block) -> str:
        inner = escape_lines(f"{begin}{write_html(block)}{end}")
        return f'<div class="mathjax_ignore tex2jax_ignore">{inner}</div>'

    return fit(document, write, size)


def write_html(block: Block) -> str:
    """A block as HTML of any size."""
    match block:
        case str() | Para():
            return f"<p>{_write_line(block)}</p>"
        case CodeBlock():
            title = f"<p>{format_prose(block.title)}</p>" if block.title else ""
            # What nbconvert writes has a font of fixed width for `code` alone.
            return f"{title}<pre><code>{escape(block.code)}</code></pre>"
        case Lines():
            is_text = all(isinstance(each, str | Para) for each in block.blocks)
            return f"<p>{_write_item(block.blocks)}</p>" if is_text else f"<div>{_write_item(block.blocks)}</div>"
        case Section():
            title = f"<p><strong>{format_prose(block.title)}</strong></p>" if block.title else ""
            return title + "".join(map(write_html, block.blocks))
        case Items():
            return _write_items(block) + "".join(map(write_html, count_rest(block)))
        case Table():
            head = "".join(f"<th>{format_prose(cell)}</th>" for cell in block.head)
            rows = ("".join(f"<td>{_write_line(cell)}</td>" for cell in row) for row in block.rows)
            body = "".join(f"<tr>{row}</tr>" for row in rows)
            table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
            return table + "".join(map(write_html, count_rest(block)))
        case Drawing():
            return block.draw(block.rows)


def format_prose(text: str) -> str:
    """A sentence as HTML; code between backticks becomes a code element."""
    return "".join(f"<code>{escape(part)}</code>" if is_code else escape(part) for part, is_code in split_code(text))


def split_code(text: str) -> Iterator[tuple[str, bool]]:
    """The parts of a sentence, and whether each is code: what is between two backticks."""
    parts = text.split("`")
    for at, part in enumerate(parts):
        yield part, bool(at % 2) and at < len(parts) - 1


def _write_line(block: str | Para) -> str:
    line = ""
    for part in to_parts(block):
        text = format_prose(part) if isinstance(part, str) else escape(part.text)
        line += f"<code>{text}</code>" if isinstance(part, Code) and text else text
    return f"<strong>{line}</strong>" if isinstance(block, Para) and block.is_strong else line


def _write_items(block: Items) -> str:
    if not block.items:
        return ""
    if block.kind == "plain":
        return "".join(write_html(Lines(*item) if len(item) > 1 else item[0]) for item in block.items)
    tag = "ol" if block.kind == "numbered" else "ul"
    return f"<{tag}>{''.join(f'<li>{_write_item(item)}</li>' for item in block.items)}</{tag}>"


def _write_item(blocks: Sequence[Block]) -> str:
    """Blocks of one item: lines are separated by a line break, other blocks separate themselves."""
    if not blocks:
        return ""
    parts = [_write_line(each) if isinstance(each, str | Para) else write_html(each) for each in blocks]
    breaks = ["<br>" if all(isinstance(each, str | Para) for each in pair) else "" for pair in pairwise(blocks)]
    return parts[0] + "".join(gap + part for gap, part in zip(breaks, parts[1:], strict=True))


# Markdown

#: Characters that can begin markup; an underscore between two letters or digits cannot.
_MARKUP = re.compile(r"([\\`*\[\]<>#|~&$]|(?<![^\W_])_|_(?![^\W_]))")
#: GitHub links addresses, mentions, numbers of issues and digests of commits after Markdown, so an escape does not stop
#: them. An empty comment does, behind `https:`, `www`, `@`, `#` and `GH-`, and within a digest.
_REFERENCE = re.compile(r"\w:(?=//)|www(?=\.)|@(?=\w)|(?<=\\)#(?=\d)|\bGH-(?=\d)", re.IGNORECASE)
_DIGEST = re.compile(r"\b(?=[a-f]*\d)[0-9a-f]{7,40}\b", re.IGNORECASE)
_SHORT = re.compile(r".{6}(?=.)")
_NOTHING = "<!-- -->"
_PAGE = re.compile(rf"({re.escape(BREAK_PAGE)}gb\d{{1,6}}\.html)(?=\.?(?:\s|$))")
_BAR = re.compile(r"(?<!\\)[|]")  # In a table, also within a code span, it would end a cell.
_TICKS = re.compile(r"`+")
_SPACES = re.compile(r"\s+")
#: Characters of code within a line.
MAX_SPAN = 160


def to_markdown(document: Block) -> str:
    """The document as Markdown as GitHub renders it, of any size."""
    return escape_lines("\n\n".join(_list_markdown(document)))


def _list_markdown(block: Block, indent: str = "") -> Iterator[str]:
    """The parts of a block that empty lines separate."""
    match block:
        case str() | Para():
            yield indent + format_markdown_line(block)
        case CodeBlock():
            if block.title:
                yield indent + format_sentence(block.title)
            yield format_block(block.code, "python", indent)
        case Lines():
            yield from _list_item(block.blocks, indent, indent)
        case Section():
            if block.title:
                yield f"### {format_sentence(block.title)}"
            for each in block.blocks:
                yield from _list_markdown(each, indent)
        case Items():
            items = []
            for number, item in enumerate(block.items, 1):
                mark = {"numbered": f"{number}. ", "plain": ""}.get(block.kind, "- ")
                items.append("\n\n".join(_list_item(item, indent + mark, indent + " " * len(mark))))
            # Items of one line each are a list without empty lines.
            if items:
                yield ("\n\n" if block.kind == "plain" or any("\n" in item for item in items) else "\n").join(items)
            yield from (indent + format_markdown_line(line) for line in count_rest(block))
        case Table():
            cells = [[format_markdown_line(cell) for cell in row] for row in block.rows]
            yield format_table([format_sentence(cell) for cell in block.head], cells)
            yield from (indent + format_markdown_line(line) for line in count_rest(block))
        case Drawing():
            return


def _list_item(blocks: Sequence[Block], first: str, rest: str) -> Iterator[str]:
    """The parts of an item; lines that follow each other are one part, with line breaks."""
    lines: list[str] = []
    indent = first
    for each in blocks:
        if isinstance(each, str | Para):
            lines.append(indent + format_markdown_line(each))
        else:
            if lines:
                yield "  \n".join(lines)
                lines = []
            yield from _list_markdown(each, rest)
        indent = rest
    if lines:
        yield "  \n".join(lines)


def format_markdown_line(block: str | Para) -> str:
    """A paragraph as one line of Markdown."""
    line = "".join(format_sentence(p) if isinstance(p, str) else format_span(p.text) for p in to_parts(block)).strip()
    return f"**{line}**" if isinstance(block, Para) and block.is_strong and line else line


def format_span(text: str) -> str:
    """A text as a code span on one line; "" for none."""
    line = format_line(text, MAX_SPAN)
    if not line:
        return ""
    ticks = "`" * (1 + max((len(run) for run in _TICKS.findall(line)), default=0))
    gap = " " if line.startswith("`") or line.endswith("`") else ""
    return f"{ticks}{gap}{line}{gap}{ticks}"


def format_sentence(text: str) -> str:
    """A sentence as text; code between backticks stays code."""
    line = _SPACES.sub(" ", text)
    return "".join(format_span(part) if is_code else _escape(part) for part, is_code in split_code(line))


def _escape(text: str) -> str:
    parts = _PAGE.split(text)
    for at, part in enumerate(parts):
        if at % 2:
            parts[at] = f"<{part}>"
        else:
            plain = _REFERENCE.sub(rf"\g<0>{_NOTHING}", _MARKUP.sub(r"\\\1", part))
            parts[at] = _DIGEST.sub(lambda found: _SHORT.sub(rf"\g<0>{_NOTHING}", found[0]), plain)
    return "".join(parts)


def format_block(code: str, language: str = "", indent: str = "") -> str:
    """Lines of code in a fence that no line in them can close; `indent` puts the block into an item of a list."""
    longest = max((len(run) for run in _TICKS.findall(code)), default=0)
    fence = "`" * max(3, longest + 1)
    lines = [fence + language, *code.splitlines(), fence]
    return "\n".join(f"{indent}{line}".rstrip() for line in lines)


def format_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; its cells are Markdown already."""
    lines = ([_BAR.sub(r"\|", cell) for cell in line] for line in (head, ["---"] * len(head), *rows))
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
