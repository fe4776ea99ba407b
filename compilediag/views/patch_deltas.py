"""Patches as they are sent to a page: of a part that the page has already, only what is new.

A *delta* makes the new value from the old one. It is one of
- `{"=": value}`: the new value itself;
- `{"t": [kept, rest]}` for a text: the number of characters that stay, and what follows them;
- `{"k": {key: delta}, "x": [keys that are gone]}` for an object;
- `{"l": [...]}` for a list, whose items are `[start, count]` for old items that stay, `[index, delta]` for one that
  changed, and `{"=": [items]}` for new ones.
`static/core/deltas.js` applies it.
"""

from __future__ import annotations

from typing import Any, cast

from . import page_json
from .page_types import Delta, PagePatch, PageRow

#: The parts that grow with a session. All others are small, or are rows, each of which is sent once.
GROWING = ("findings", "plan", "examples", "torch_docs", "ranks", "vllm", "panels")
#: The table whose rows are [id, document]; the document of a function has all that happened to it.
DOCUMENTS = "functions"
#: Characters at the beginning of a text that are worth to be left out.
LEAST_KEPT = 100


class PatchDeltas:
    """Replaces the growing parts of patches by deltas. It remembers what was sent."""

    def __init__(self) -> None:
        self._parts: dict[str, Any] = {}
        self._documents: dict[int, Any] = {}

    def forget(self) -> None:
        """Send all parts whole again: a page has got them in another way."""
        self._parts.clear()
        self._documents.clear()

    def shorten(self, patch: PagePatch) -> PagePatch:
        """The patch with deltas, in `changes` and `documents`, instead of what the pages have already."""
        shortened = dict(patch)
        changes: dict[str, Delta] = {}
        for name in GROWING:
            if name in patch:
                value = shortened[name]
                if name in self._parts and (delta := find_delta(self._parts[name], value)) is not None:
                    changes[name] = delta
                    del shortened[name]
                self._parts[name] = value
        whole, changed = self._shorten_documents(patch.get("rows", {}).get(DOCUMENTS, []))
        if changed:
            rows = {**patch["rows"], DOCUMENTS: whole}
            shortened["rows"] = {name: rows[name] for name in rows if rows[name]}
            shortened["documents"] = changed
        if changes:
            shortened["changes"] = changes
        return cast(PagePatch, shortened)

    def _shorten_documents(self, rows: list[PageRow]) -> tuple[list[PageRow], list[tuple[int, Delta]]]:
        whole: list[PageRow] = []
        changed: list[tuple[int, Delta]] = []
        for number, document in rows:
            delta = find_delta(self._documents[number], document) if number in self._documents else None
            if delta is None:
                whole.append([number, document])
            else:
                changed.append((number, delta))
            self._documents[number] = document
        return whole, changed


def find_delta(old: Any, new: Any) -> Delta | None:
    """The delta from `old` to `new`; None if that is no shorter than `new`."""
    delta = _make_delta(old, new)
    return delta if len(page_json.dumps(delta)) < len(page_json.dumps(new)) else None


def _make_delta(old: Any, new: Any) -> Delta:
    if isinstance(old, dict) and isinstance(new, dict):
        changed = [(key, value) for key, value in new.items() if old.get(key, old) != value]
        keys: dict[str, Delta] = {k: _make_delta(old[k], v) if k in old else {"=": v} for k, v in changed}
        gone = [key for key in old if key not in new]
        return {"k": keys, "x": gone} if gone else {"k": keys}
    if isinstance(old, (list, tuple)) and isinstance(new, (list, tuple)):
        return {"l": _list_steps(old, new)}
    if isinstance(old, str) and isinstance(new, str):
        differing = (at for at, (a, b) in enumerate(zip(old, new, strict=False)) if a != b)
        kept = next(differing, min(len(old), len(new)))
        # JavaScript counts characters in another way.
        if kept >= LEAST_KEPT and old[:kept].isascii():
            return {"t": (kept, new[kept:])}
    return {"=": new}


def _list_steps(old: list[Any] | tuple[Any, ...], new: list[Any] | tuple[Any, ...]) -> list[Any]:
    """The steps that make one list from another. An item that stays is found wherever it was."""
    texts, wanted = [page_json.dumps(item) for item in old], [page_json.dumps(item) for item in new]
    places, stays = {text: at for at, text in enumerate(texts)}, set(wanted)
    steps: list[Any] = []
    at = 0
    for item, text in zip(new, wanted, strict=True):
        if at < len(old) and texts[at] == text:
            _copy(steps, at)
        elif text in places:
            at = places[text]
            _copy(steps, at)
        elif at < len(old) and texts[at] not in stays:
            _add_changed(steps, at, _make_delta(old[at], item), item)
        else:
            _add_new(steps, item)
            continue
        at += 1
    return steps


def _copy(steps: list[Any], at: int) -> None:
    last = steps[-1] if steps else None
    if isinstance(last, list) and isinstance(last[1], int) and last[0] + last[1] == at:
        last[1] += 1
    else:
        steps.append([at, 1])


def _add_changed(steps: list[Any], at: int, delta: Delta, item: Any) -> None:
    if "=" in delta or len(page_json.dumps(delta)) >= len(page_json.dumps(item)):
        _add_new(steps, item)
    else:
        steps.append([at, delta])


def _add_new(steps: list[Any], item: Any) -> None:
    if steps and isinstance(steps[-1], dict):
        steps[-1]["="].append(item)
    else:
        steps.append({"=": [item]})
