"""Makes a report small: a text that many cells have is stored once, and similar texts are compressed together.

Recompiles of one function repeat file names and guards, and their graphs differ in one number. `unpackPatch` in
`static/core/page-data.js` reads what `pack_patch` makes.
"""

from __future__ import annotations

import base64
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..storage.texts import inflate
from .page_types import PageRow, StoredText

#: Shorter texts stay in their cells: a number in their place saves nothing.
MIN_CHARS = 6
#: Longer texts, in bytes, are not compressed together with others.
MAX_PACKED = 16 << 20
#: Limits of the texts that are compressed together, which are all inflated to show one of them.
BLOCK_CHARS, BLOCK_TEXTS = 400_000, 64


def pack_patch(patch: Mapping[str, Any]) -> dict[str, Any]:
    """The same patch with smaller `rows` and `texts`, and the parts `strings` and `packed` that the cells refer to."""
    rows, strings, packed = pack_rows(patch.get("rows", {}))
    return {**patch, "rows": rows, "strings": strings, "packed": packed, "texts": pack_texts(patch.get("texts", {}))}


def pack_rows(
    tables: Mapping[str, Sequence[PageRow]],
) -> tuple[dict[str, list[PageRow]], list[str], dict[str, list[int]]]:
    """(rows, strings, table -> the columns that refer to strings by their position)."""
    packed = {table: _find_text_columns(rows) for table, rows in tables.items()}
    counts = Counter(
        cell for table, rows in tables.items() for row in rows for at in packed[table] if (cell := row[at]) is not None
    )
    strings = [text for text, count in counts.items() if count > 1 and len(text) >= MIN_CHARS]
    numbers = {text: number for number, text in enumerate(strings)}

    def pack_row(row: PageRow, columns: Sequence[int]) -> PageRow:
        cells = row[:]
        for at in columns:
            cells[at] = numbers.get(cells[at], cells[at])
        return cells

    small = {table: [pack_row(row, packed[table]) for row in rows] for table, rows in tables.items()}
    return small, strings, {table: columns for table, columns in packed.items() if columns}


def _find_text_columns(rows: Sequence[PageRow]) -> list[int]:
    """The columns of which every cell is a text or missing, and one is a text."""
    width = min((len(row) for row in rows), default=0)
    kinds = ({type(row[at]) for row in rows} for at in range(width))
    return [at for at, found in enumerate(kinds) if str in found and found <= {str, type(None)}]


def pack_texts(texts: Mapping[str, StoredText]) -> dict[str, Any]:
    """The texts in blocks: the first text of a block holds the block (`z`), the others name the first (`in`).

    `slice` is the begin and the end of each in the inflated block, in UTF-16 units.
    """
    small: dict[str, Any] = dict(texts)
    for block in _list_blocks(texts):
        joined = "".join(text for _, text in block)
        stored = base64.b64encode(zlib.compress(joined.encode(), 9)).decode()
        if len(stored) < sum(len(texts[event_id]["z"]) for event_id, _ in block):
            begin, first = 0, block[0][0]
            for event_id, text in block:
                end = begin + len(text.encode("utf-16-le")) // 2
                place = {"z": stored} if event_id == first else {"in": int(first)}
                small[event_id] = {**place, "cut": texts[event_id]["cut"], "slice": [begin, end]}
                begin = end
    return small


def _list_blocks(texts: Mapping[str, StoredText]) -> Iterator[list[tuple[str, str]]]:
    """Texts that are close to each other in the session, as (event id, text): graphs and guards of one function."""
    block: list[tuple[str, str]] = []
    size = 0
    for event_id in sorted(texts, key=int):
        try:
            text = inflate(base64.b64decode(texts[event_id]["z"]), MAX_PACKED)
        except (KeyError, zlib.error, UnicodeDecodeError):
            continue  # A damaged text is reported where it is shown.
        if block and (size + len(text) > BLOCK_CHARS or len(block) == BLOCK_TEXTS):
            yield block
            block, size = [], 0
        block.append((event_id, text))
        size += len(text)
    if block:
        yield block
