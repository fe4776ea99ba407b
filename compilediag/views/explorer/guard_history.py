"""The guards of one function as the explorer shows them: values over time, the user's line, what failed with them."""

from __future__ import annotations

import math
import re
from collections import Counter
from typing import Any

from ...decode.guards.guard_text import parse_guard
from ...decode.guards.guard_tree_text import ObjectNames, describe_guard
from ...diagnosis.wording import listed, spoken
from .source_lines import SourceLines

Row = dict[str, Any]

_NUMBER = re.compile(r"-?\d{1,15}(?:\.\d{1,15})?(?:e[-+]?\d{1,3})?")
_ANOTHER = " (another object)"
_HINT = re.compile(r"\(HINT: (.*)\)\s*$", re.S)
_STACK = "User stack trace:\n"
#: Texts of one guard that are told: they differ in the values only.
MOST_TEXTS = 6
#: What a guard of these kinds needs is a bound or a set, not one value.
_NO_VALUE = frozenset({"symbolic_shape"})


class Guards:
    """The guards that failed, numbered as they come. What was guarded is one guard, whatever of it was checked."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._found: list[_Guard] = []

    def number(self, cells: Row) -> int:
        """The number of the guard that a row of `guard_failures` or `recompiles` tells of."""
        key = cells["guard_source"] or f"{cells['guard_kind'] or 'other'}: {cells.get('guard') or ''}"[:200]
        at = self._numbers.get(key)
        if at is None:
            at = self._numbers[key] = len(self._found)
            self._found.append(_Guard(key))
        self._found[at].note(cells)
        return at

    def documents(
        self, rows: list[Row], entries: list[Row], every_guard: bool, lines: SourceLines | None
    ) -> list[dict[str, Any]]:
        return [
            {
                **guard.document(lines),
                **_series(at, guard, rows, entries),
                **_company(at, rows, [other.name for other in self._found], every_guard),
                "recompiles": sum(at in row["actual"] or row["guard"] == at for row in rows),
                "lost_s": _lost(at, rows),
            }
            for at, guard in enumerate(self._found)
        ]


class _Guard:
    """What is known of one guard from all rows that tell of it."""

    def __init__(self, key: str):
        self.key = key
        self.source: str | None = None
        self.kinds: dict[str, None] = {}
        self.texts: dict[str, None] = {}
        self.user_file = self.user_line = self.user_code = self.reason = None

    @property
    def name(self) -> str:
        return spoken(self.source) if self.source else next(iter(self.kinds)).replace("_", " ")

    def note(self, cells: Row) -> None:
        self.source = self.source or cells["guard_source"]
        self.kinds.setdefault(cells["guard_kind"] or "other")
        if cells.get("guard"):
            self.texts.setdefault(cells["guard"])
        if cells["user_file"] is not None and self.user_line is None:
            self.user_file, self.user_line = cells["user_file"], cells["user_line"]
        self.user_code = self.user_code or cells.get("user_code")
        self.reason = self.reason or cells.get("reason")

    def document(self, lines: SourceLines | None) -> dict[str, Any]:
        parsed = parse_guard(next(iter(self.texts))) if self.texts else None
        # Only torch's line is known if the guard was made in its own code.
        framework = parsed if parsed and parsed.user_file and self.user_file is None else None
        code = self.user_code or (parsed.user_code if parsed and framework is None else None)
        stack = (self.reason or "").partition(_STACK)[2].rstrip() or None
        names = ObjectNames()
        return {
            "key": self.key,
            "source": self.source,
            "name": self.name,
            "kinds": list(self.kinds),
            "texts": [describe_guard(text, names) for text in list(self.texts)[:MOST_TEXTS]],
            "user_file": self.user_file,
            "user_line": self.user_line,
            "user_code": code if lines else None,
            "around": lines.around(self.user_file, self.user_line, code) if lines else None,
            "framework": f"{framework.user_file}:{framework.user_line}" if framework else None,
            "framework_code": framework.user_code if framework else None,
            "stack": stack,
            "hint": next((found[1] for text in self.texts if (found := _HINT.search(text))), None),
        }


def _series(at: int, guard: _Guard, rows: list[Row], entries: list[Row]) -> dict[str, Any]:
    """`values`: [text, number or None]; `points`: [step, value, came].

    Step 0 is the first entry, step n the n-th recompile. `came` is false for what an entry needs that was made then.
    """
    values = _Values()
    points: list[list[Any]] = []
    if not _NO_VALUE.issuperset(guard.kinds):
        needs = (need for entry in entries if entry["made_at"] is None for need in entry["failed"])
        first = next((expected for number, _, _, expected in needs if number == at), None)
        if first is not None:
            points.append([0, values.number(first, is_new=False), False])
    for step, row in enumerate(rows, 1):
        actual = row["actual"].get(at)
        if actual is not None:
            points.append([step, values.number(actual, _failed_everywhere(at, row)), True])
    return {"values": values.told, "points": points}


class _Values:
    """The values that were seen, each once; objects that look the same are told apart where that is known."""

    def __init__(self) -> None:
        self._known: dict[str, int] = {}
        self._objects: Counter[str] = Counter()
        self.told: list[list[Any]] = []

    def number(self, text: str, is_new: bool) -> int:
        """The number of a value. `is_new`: no entry had the same object, so what looks alike is another one."""
        label = text.removesuffix(_ANOTHER)
        if label != text:
            self._objects[label] += is_new
            label = f"{label} #{self._objects[label] + 1}" if is_new else f"{label}, an earlier one"
        if label not in self._known:
            self._known[label] = len(self.told)
            number = float(label) if _NUMBER.fullmatch(label) else None
            self.told.append([label, number if number is not None and math.isfinite(number) else None])
        return self._known[label]


def _failed_everywhere(at: int, row: Row) -> bool:
    cells = row["cells"]
    return len(cells) == (row["entries_checked"] or 0) and all(any(f[0] == at for f in found) for _, found in cells)


def _lost(at: int, rows: list[Row]) -> float | None:
    """Seconds of the recompiles that this guard was the reason of."""
    lost = [row["lost_s"] for row in rows if row["guard"] == at and row["lost_s"] is not None]
    return sum(lost) if lost else None


def _company(at: int, rows: list[Row], names: list[str], every_guard: bool) -> dict[str, Any]:
    """Which guards failed with this one, and what that means for whoever would mend this one alone.

    `alone`: recompiles at which some entry had nothing against it but this guard.
    """
    struck = [row for row in rows if at in row["actual"]]
    beside: Counter[int] = Counter(g for row in struck for g in row["actual"] if g != at)
    needed = [_least_company(at, row, every_guard) for row in struck]
    alone = sum(other == frozenset() for other in needed)
    stubborn = Counter(other for other in needed if other)
    with_it = min(stubborn, key=lambda other: (-stubborn[other], len(other), sorted(other)), default=None)
    told = _verdict(alone, len(struck), [names[g] for g in sorted(with_it)] if with_it else [])
    return {"with": [[g, n] for g, n in beside.most_common()], "alone": alone, "verdict": told}


def _least_company(at: int, row: Row, every_guard: bool) -> frozenset[int] | None:
    """The fewest other guards that failed beside this one in an entry; None if no entry tells."""
    sets = [
        frozenset(f[0] for f in found if f[0] != at)
        for entry, found in row["cells"]
        if any(f[0] == at for f in found) and (every_guard or entry == row["closest"])
    ]
    return min(sets, key=lambda other: (len(other), sorted(other)), default=None)


def _verdict(alone: int, struck: int, others: list[str]) -> str | None:
    if not struck:
        return None
    times = "recompile" if struck == 1 else f"{struck} recompiles"
    if alone == struck:
        all_times = {1: "the recompile", 2: "both recompiles"}.get(struck, f"all {times}")
        return f"Fixing this one alone would have spared {all_times} at which it failed."
    if not others:
        return None
    also = f"{listed(others)} failed too in every entry that came near"
    if alone == 0:
        return f"Fixing this one alone would not have helped, because {also}."
    return f"Fixing this one alone would have spared {alone} of the {times} at which it failed; at others {also}."
