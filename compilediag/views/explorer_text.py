"""The explorer as plain text: the functions that recompiled, their entries, recompiles and guards."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from ..diagnosis import explain_gaps
from ..document import Block, Items, Section, escape_unprintable, shorten_items, to_text
from ..formatting import format_amount, format_count, format_function, format_line, format_place, format_seconds
from ..storage.data import SessionData
from .explorer import make_documents
from .page_types import EntryDocument, FunctionDocument, GuardDocument, RecompileDocument

#: Functions, and items of each of their lists, that are shown; the rest is counted.
MAX_FUNCTIONS, MAX_LINES = 8, 12
#: Values of a guard that are shown.
MAX_VALUES = 8


def format_explorer(data: SessionData, encoding: str | None = None) -> str:
    """What `session.explore()` shows, as text of at most 100 columns; only a single word that is longer exceeds that.

    `encoding` is the encoding that the text must be printable in, by default that of standard output.
    """
    with data.settled():
        documents = make_documents(data, data.meta.get("detail") == "full")
        gap = explain_gaps(data).get("recompiles")
    return escape_unprintable(f"{to_text(describe_functions(documents, gap))}\n", encoding)


def describe_functions(documents: Sequence[FunctionDocument], gap: str | None) -> Section:
    """The functions that recompiled. `gap` is why recompiles were not collected, None if they were."""
    found = sorted((d for d in documents if d["recompiles"]), key=lambda d: (-(d["lost_s"] or 0), -d["recompiles"]))
    functions = Items([_describe_function(document) for document in found], "numbered", (" functions",))
    nothing = ["Nothing was recompiled."] if not found and gap is None else []
    missing = [f"Not collected: recompiles: {gap}"] if gap is not None else []
    return Section(shorten_items(functions, MAX_FUNCTIONS), *nothing, *missing)


def _describe_function(document: FunctionDocument) -> list[Block]:
    calls = "" if document["eager"] else " (calls were not counted)"
    entries = sorted(document["entries"], key=_get_turn)
    return [
        _format_head(document),
        f"cache entries in lookup order{calls}:",
        _list_lines(_format_entry(entry, document) for entry in entries),
        "recompiles, and the guards that failed in each entry (* is the closest entry):",
        _list_lines(_format_recompile(row, document) for row in document["rows"]),
        "guards:",
        _list_lines(map(_format_guard, document["guards"])),
    ]


def _list_lines(lines: Iterable[str]) -> Items:
    return shorten_items(Items([[line] for line in lines], "indented"), MAX_LINES)


def _format_head(document: FunctionDocument) -> str:
    recompiles = format_amount(document["recompiles"], "recompile")
    lost = f" cost {format_seconds(document['lost_s'])}" if document["lost_s"] is not None else ""
    where = format_function(document["function"], document["file"], document["line"])
    head = f"{where}: {recompiles}{lost}, {format_amount(document['compiles'], 'compile')}"
    once, eager = document["once"], document["eager"]
    if once and once["count"]:
        head += f"; {format_amount(once['count'], 'entry', 'entries')} called once, {format_seconds(once['seconds'])}"
    if eager and eager["calls"]:
        head += f"; {format_amount(eager['calls'], 'call')} ran eagerly, {format_seconds(eager['total_s'])}"
    return head


def _get_turn(entry: EntryDocument) -> tuple[bool, int]:
    return entry["order"] is None, entry["order"] or 0


def _format_entry(entry: EntryDocument, document: FunctionDocument) -> str:
    failed = ", ".join(f"{document['guards'][f.guard]['name']} {f.recompiles}x" for f in entry["failed"])
    parts = [
        _format_origin(entry, document),
        format_seconds(entry["seconds"]) if entry["seconds"] is not None else None,
        f"{format_count(entry['guard_count'])} guards" if entry["guard_count"] is not None else None,
        f"{format_seconds(entry['guard_latency_us'] / 1e6)} per check"
        if entry["guard_latency_us"] is not None
        else None,
        _format_calls(entry),
        f"failed: {failed}" if failed else None,
    ]
    return f"{entry['compile_id']}  {'; '.join(filter(None, parts))}"


def _format_origin(entry: EntryDocument, document: FunctionDocument) -> str:
    if entry["event"] is None:
        return "compiled before the watch"
    if entry["made_at"] is None:
        return "first compile"
    return _format_cause(document["rows"][entry["made_at"]], document)


def _format_calls(entry: EntryDocument) -> str | None:
    """None if calls were not counted."""
    if entry["calls"] is None:
        return None
    pays = f", pays off after {format_count(entry['break_even'])}" if entry["break_even"] is not None else ""
    return f"{format_amount(entry['calls'], 'call')}{pays}"


def _format_cause(row: RecompileDocument, document: FunctionDocument) -> str:
    name = "a guard" if row["guard"] is None else document["guards"][row["guard"]]["name"]
    if row["expected"] is None and row["now"] is None:
        return f"{format_line(name)} failed"
    return f"{format_line(name)}: {format_line(row['expected'] or '?', 60)} -> {format_line(row['now'] or '?', 60)}"


def _format_recompile(row: RecompileDocument, document: FunctionDocument) -> str:
    guards, entries = document["guards"], document["entries"]
    failed = "; ".join(
        f"{entries[entry]['compile_id']}{'*' if entry == row['closest'] else ''} "
        + ", ".join(guards[f.guard]["name"] for f in found)
        for entry, found in row["cells"]
    )
    if row["others"]:
        failed += f"; {format_amount(row['others'], 'more entry', 'more entries')} not analyzed"
    lost = f"  {format_seconds(row['lost_s'])}" if row["lost_s"] is not None else ""
    clock = datetime.fromtimestamp(row["time"] / 1e3).strftime("%H:%M:%S")
    head = f"{row['compile_id']}  {clock}  {_format_cause(row, document)}{lost}"
    return f"{head}  [{format_line(failed)}]" if failed else head


def _format_guard(guard: GuardDocument) -> str:
    where = format_place(guard["user_file"], guard["user_line"])
    seen = ", ".join(format_line(value, 40) for value, _ in guard["values"][:MAX_VALUES])
    parts = [
        f"{guard['name']} ({', '.join(guard['kinds']).replace('_', ' ')})",
        f"at {where}" if where else None,
        f"values: {seen}" if seen else None,
    ]
    return f"{'; '.join(filter(None, parts))}. {guard['verdict']}"
