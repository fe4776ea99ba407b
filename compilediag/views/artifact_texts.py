"""The texts of artifacts for the page, within a budget. They stay compressed, as the session stores them."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

from ..decode.records.record_kinds import GUARD_TREE
from ..events import Artifact
from ..storage.texts import deflate, inflate
from ..unpacking import unpack_start
from .explorer.documents import ExplorerDocuments
from .page_types import StoredText

#: A text beyond the budget is cut to so many characters.
CUT_CHARS = 4_000
#: Bytes of a guard tree, and of all that are added at once.
MAX_TREE, MAX_TREES = 16 << 20, 512 << 20


class TextBudget:
    """Bounds the texts of a page to `size` bytes of base64."""

    def __init__(self, size: int):
        self._size = self._free = size

    def make_texts(self, bodies: Mapping[int, bytes]) -> dict[str, StoredText]:
        """The texts of these artifacts, the short ones first; beyond the budget only their beginnings, beyond twice
        the budget none. A text that several artifacts have is there once.
        """
        texts: dict[str, StoredText] = {}
        first: dict[bytes, int] = {}
        for event_id, body in sorted(bodies.items(), key=lambda item: (len(item[1]), item[0])):
            if body in first:
                texts[str(event_id)] = {"same": first[body]}
            elif self._free > -self._size:
                is_cut = len(body) * 4 // 3 > self._free
                encoded = base64.b64encode(_cut(body) if is_cut else body).decode()
                self._free -= len(encoded)
                texts[str(event_id)] = {"z": encoded, "cut": is_cut}
                first[body] = event_id
        return texts


def make_tree_rows(
    artifacts: Sequence[Artifact], bodies: Mapping[int, bytes], explorer: ExplorerDocuments
) -> list[list[Any]]:
    """The rows of the guard trees among the artifacts. A tree is left out if it is damaged, which is reported where its
    text is shown, or larger than any that torch writes.
    """
    rows, free = [], MAX_TREES
    for artifact in artifacts:
        body = bodies.get(artifact.event_id or 0)
        if artifact.name == GUARD_TREE and body is not None and free > 0:
            try:
                tree = inflate(body, MAX_TREE)
            except (zlib.error, UnicodeDecodeError):
                free -= MAX_TREE
                continue
            free -= len(tree)
            rows.append(explorer.add_tree(artifact, tree))
    return rows


def _cut(body: bytes) -> bytes:
    """The first characters of a deflated text; nothing of a damaged one."""
    try:
        return deflate(unpack_start(body, 4 * CUT_CHARS).decode(errors="ignore")[:CUT_CHARS].encode())
    except zlib.error:
        return deflate(b"")
