"""The guards of one function: their values over time, the user's line, and what failed together with each of them."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypedDict

from ...decode.guards.guard_text import parse_guard
from ...decode.guards.guard_tree_text import ObjectNames, describe_guard
from ...events import ANOTHER_OBJECT, GuardFailure, Recompile
from ...formatting import format_expression, format_names
from ..page_types import Company, EntryDocument, FailedGuard, GuardDescription, GuardDocument, RecompileDocument
from .source_lines import SourceLines

_NUMBER = re.compile(r"-?\d{1,15}(?:\.\d{1,15})?(?:e[-+]?\d{1,3})?")
_HINT = re.compile(r"\(HINT: (.*)\)\s*$", re.S)
_STACK = "User stack trace:\n"
#: Texts of one guard that are shown: they differ only in the values.
MAX_TEXTS = 6
#: Guards of these kinds need a bound or a set, not one value.
_KINDS_WITHOUT_VALUE = frozenset({"symbolic_shape"})


@dataclass
class GridRow:
    """A recompile as a line of the grid, with what each guard saw at it."""

    document: RecompileDocument
    actual: dict[int, str | None] = field(default_factory=dict)

    def has_failed(self, guard: int) -> bool:
        """True if the guard failed in an entry, or was the reason for the recompile."""
        return guard in self.actual or self.document["guard"] == guard

    @property
    def has_every_entry(self) -> bool:
        """False if the failing guards of some checked entries are not known."""
        return len(self.document["cells"]) == (self.document["entries_checked"] or 0)

    def has_failed_everywhere(self, guard: int) -> bool:
        """True if the guard failed in every entry of the recompile that is recorded."""
        return all(any(f.guard == guard for f in found) for _, found in self.document["cells"])


class GuardList:
    """The guards that failed, numbered in the order of appearance. All checks of one source are one guard."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._guards: list[_GuardHistory] = []

    def add(self, event: GuardFailure | Recompile) -> int:
        """Take the guard that an event names; its number."""
        text = event.guard if isinstance(event, GuardFailure) else None
        key = event.guard_source or f"{event.guard_kind or 'other'}: {text or ''}"[:200]
        number = self._numbers.setdefault(key, len(self._guards))
        if number == len(self._guards):
            self._guards.append(_GuardHistory(key))
        self._guards[number].add(event)
        return number

    def make_documents(
        self, rows: list[GridRow], entries: list[EntryDocument], has_every_guard: bool, lines: SourceLines | None
    ) -> list[GuardDocument]:
        """The documents of all guards. `lines` reads the user's code; None leaves it out."""
        names = [guard.name for guard in self._guards]
        return [
            {
                **guard.describe(lines),
                **_collect_values(number, guard, rows, entries),
                **_find_company(number, rows, names, has_every_guard),
                "recompiles": sum(row.has_failed(number) for row in rows),
                "lost_s": _sum_lost(number, rows),
            }
            for number, guard in enumerate(self._guards)
        ]


class _GuardHistory:
    """One guard, from all events that name it."""

    def __init__(self, key: str):
        self.key = key
        self.source: str | None = None
        self.kinds: dict[str, None] = {}
        self.texts: dict[str, None] = {}
        self.user_file: str | None = None
        self.user_line: int | None = None
        self.user_code: str | None = None
        self.reason: str | None = None

    @property
    def name(self) -> str:
        return format_expression(self.source) if self.source else next(iter(self.kinds)).replace("_", " ")

    def add(self, event: GuardFailure | Recompile) -> None:
        self.source = self.source or event.guard_source
        self.kinds.setdefault(event.guard_kind or "other")
        if event.user_file is not None and self.user_line is None:
            self.user_file, self.user_line = event.user_file, event.user_line
        if isinstance(event, Recompile):
            self.user_code = self.user_code or event.user_code
            self.reason = self.reason or event.reason
        elif event.guard:
            self.texts.setdefault(event.guard)

    def describe(self, lines: SourceLines | None) -> GuardDescription:
        # The longest text has torch's comment.
        parsed = parse_guard(max(self.texts, key=len)) if self.texts else None
        # Only torch's line is known if the guard was made in its own code.
        framework = parsed if parsed and parsed.user_file and self.user_file is None else None
        code = self.user_code or (parsed.user_code if parsed and framework is None else None)
        names = ObjectNames()
        return {
            "key": self.key,
            "source": self.source,
            "name": self.name,
            "kinds": list(self.kinds),
            "texts": [describe_guard(text, names) for text in list(self.texts)[:MAX_TEXTS]],
            "user_file": self.user_file,
            "user_line": self.user_line,
            "user_code": code if lines else None,
            "around": lines.read_around(self.user_file, self.user_line, code) if lines else None,
            "framework": f"{framework.user_file}:{framework.user_line}" if framework else None,
            "framework_code": framework.user_code if framework else None,
            "stack": (self.reason or "").partition(_STACK)[2].rstrip() or None,
            "hint": next((found[1] for text in self.texts if (found := _HINT.search(text))), None),
        }


class _Values(TypedDict):
    """[text, number or None] of each value; [step, value, whether a call brought it] of each point in time."""

    values: list[tuple[str, float | None]]
    points: list[tuple[int, int, bool]]


def _collect_values(
    number: int, guard: _GuardHistory, rows: list[GridRow], entries: Iterable[EntryDocument]
) -> _Values:
    """The values of a guard over time. Step 0 is the value that the first entry needs, step n the n-th recompile."""
    values = _ValueList()
    points: list[tuple[int, int, bool]] = []
    if not _KINDS_WITHOUT_VALUE.issuperset(guard.kinds):
        first_entries = (entry for entry in entries if entry["made_at"] is None)
        needs = (need.expected for entry in first_entries for need in entry["failed"] if need.guard == number)
        first = next(needs, None)
        if first is not None:
            points.append((0, values.add(first, is_new=False), False))
    for step, row in enumerate(rows, 1):
        actual = row.actual.get(number)
        if actual is not None:
            is_new = row.has_failed_everywhere(number)
            points.append((step, values.add(actual, is_new and row.has_every_entry, is_new), True))
    return {"values": values.listed, "points": points}


class _ValueList:
    """The values that a guard saw, each once. Different objects that look the same get different names if possible."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._objects: Counter[str] = Counter()
        self.listed: list[tuple[str, float | None]] = []

    def add(self, text: str, is_new: bool, may_be_new: bool = False) -> int:
        """The number of a value. `is_new`: no entry had the same object, so one that looks alike is another one. If
        only `may_be_new` is true, that is not known, and the value keeps its text.
        """
        label = text.removesuffix(ANOTHER_OBJECT)
        if label != text and not is_new and may_be_new:
            label = text
        elif label != text:
            self._objects[label] += is_new
            label = f"{label} #{self._objects[label] + 1}" if is_new else f"{label}, an earlier one"
        if label not in self._numbers:
            self._numbers[label] = len(self.listed)
            number = float(label) if _NUMBER.fullmatch(label) else None
            self.listed.append((label, number if number is not None and math.isfinite(number) else None))
        return self._numbers[label]


def _sum_lost(number: int, rows: Iterable[GridRow]) -> float | None:
    """Seconds of the recompiles that this guard was the reason for."""
    lost = [row.document["lost_s"] for row in rows if row.document["guard"] == number]
    known = [seconds for seconds in lost if seconds is not None]
    return sum(known) if known else None


def _find_company(number: int, rows: Iterable[GridRow], names: Sequence[str], has_every_guard: bool) -> Company:
    """Which guards failed with this one, and what fixing this one alone would have prevented.

    `alone` counts the recompiles at which this was the only failing guard of some entry.
    """
    failed = [row for row in rows if number in row.actual]
    beside: Counter[int] = Counter(guard for row in failed for guard in row.actual if guard != number)
    smallest = [_find_smallest_company(number, row, has_every_guard) for row in failed]
    alone = sum(others == frozenset() for others in smallest)
    counts = Counter(others for others in smallest if others)
    usual = min(counts, key=lambda others: (-counts[others], len(others), sorted(others)), default=frozenset())
    verdict = _judge(alone, len(failed), [names[guard] for guard in sorted(usual)])
    return {"with": list(beside.most_common()), "alone": alone, "verdict": verdict}


def _find_smallest_company(number: int, row: GridRow, has_every_guard: bool) -> frozenset[int] | None:
    """The fewest other guards that failed together with this one in an entry; None if no entry shows it.

    Only the closest entry shows it if the failing guards of the others were not all recorded.
    """
    closest = row.document["closest"]
    companies = [
        _exclude(number, found)
        for entry, found in row.document["cells"]
        if any(f.guard == number for f in found) and (has_every_guard or entry == closest)
    ]
    return min(companies, key=lambda others: (len(others), sorted(others)), default=None)


def _exclude(number: int, found: Iterable[FailedGuard]) -> frozenset[int]:
    return frozenset(f.guard for f in found if f.guard != number)


def _judge(alone: int, failed: int, others: Sequence[str]) -> str | None:
    """What fixing this guard alone would have prevented, in a sentence; None if that is not known."""
    if not failed:
        return None
    recompiles = {1: "the only recompile", 2: "both recompiles"}.get(failed, f"all {failed} recompiles")
    if alone == failed:
        return f"Fixing this guard alone would have prevented {recompiles} at which it failed."
    if not others:
        return None
    also = format_names(others)
    if alone == 0:
        return f"Fixing this guard alone would not have helped: {also} also failed in every entry that it failed in."
    return (
        f"Fixing this guard alone would have prevented {alone} of the {failed} recompiles at which it failed; "
        f"at the others, {also} also failed."
    )
