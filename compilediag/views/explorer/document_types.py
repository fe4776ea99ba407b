"""What the explorer sends to the page: one document per function. Times are in ms since 1970, durations in s."""

from __future__ import annotations

from typing import Any, NamedTuple, TypedDict


class FailedGuard(NamedTuple):
    """A guard that failed in an entry at a recompile; `guard` is its number in the document."""

    guard: int
    is_first: bool
    fail_count: int | None
    expected: str | None


class GuardCount(NamedTuple):
    """How often a guard failed in an entry: at so many recompiles, and torch's own last count."""

    guard: int
    recompiles: int
    fail_count: int | None
    expected: str | None


class EntryDocument(TypedDict):
    """A cache entry. `event` is None for one that was compiled before the watch."""

    event: int | None
    compile_id: str | None
    made_at: int | None
    seconds: float | None
    tree: int | None
    order: int | None
    failed: list[GuardCount]
    calls: int | None
    mean_s: float | None
    won_s: float | None
    break_even: int | None
    time: float | None
    guard_count: int | None
    guard_latency_us: float | None


class RecompileDocument(TypedDict):
    """A recompile. `made`, `closest` and the first item of each of `cells` are numbers of entries; `others` is how many
    of those checked have no cell, because only the closest are analyzed.
    """

    event: int
    made: int | None
    closest: int | None
    guard: int | None
    cells: list[tuple[int, list[FailedGuard]]]
    time: float
    compile_id: str | None
    expected: str | None
    now: str | None
    entries_checked: int | None
    others: int
    lost_s: float | None


#: [guard, recompiles] of the guards that failed together with this one, the recompiles at which it was the only
#: failing guard of some entry, and what fixing it would have prevented. `with` is a keyword, so this is no class.
Company = TypedDict("Company", {"with": list[tuple[int, int]], "alone": int, "verdict": str | None})


class GuardDescription(TypedDict):
    """The part of a guard's document that says what it is."""

    key: str
    source: str | None
    name: str
    kinds: list[str]
    texts: list[str]
    user_file: str | None
    user_line: int | None
    user_code: str | None
    around: list[tuple[int, str]] | None
    framework: str | None
    framework_code: str | None
    stack: str | None
    hint: str | None


class GuardDocument(Company, GuardDescription):
    """A guard that failed: where it was made, the values that it saw, and what failed together with it."""

    values: list[tuple[str, float | None]]
    points: list[tuple[int, int, bool]]
    recompiles: int
    lost_s: float | None


class EagerCalls(TypedDict):
    """The calls of a function that ran eagerly."""

    calls: int
    total_s: float
    mean_s: float | None


class CalledOnce(TypedDict):
    """The entries that were called once: how many, and the s of those whose compile was recorded."""

    count: int
    seconds: float


class FunctionDocument(TypedDict):
    """All of one function in one process. `eager` and `once` are None if calls were not counted."""

    rank: int | None
    pid: int | None
    file: str | None
    line: int | None
    function: str | None
    compiles: int
    recompiles: int
    lost_s: float | None
    eager: EagerCalls | None
    once: CalledOnce | None
    entries: list[EntryDocument]
    rows: list[RecompileDocument]
    guards: list[GuardDocument]


#: The lists of a document, which are sent as column names and rows.
LISTS = ("entries", "rows", "guards")


def pack_document(document: FunctionDocument) -> dict[str, Any]:
    """A document for the page: each list as the names of its columns, once, and its rows."""
    return {**document, **{part: _pack_list(document[part]) for part in LISTS}}  # type: ignore[literal-required]


def unpack_document(packed: dict[str, Any]) -> FunctionDocument:
    """The document that `pack_document` was given."""
    lists = {part: [dict(zip(packed[part][0], row, strict=True)) for row in packed[part][1]] for part in LISTS}
    return {**packed, **lists}  # type: ignore[typeddict-item]


def _pack_list(items: list[dict[str, Any]]) -> tuple[list[str], list[list[Any]]]:
    return (list(items[0]), [list(item.values()) for item in items]) if items else ([], [])
