"""The explorer in plain text: the functions that recompiled, their entries, recompiles and guards."""

from __future__ import annotations

import sys
from datetime import datetime
from typing import Any

from ...diagnosis import explain_gaps
from ...diagnosis.wording import counted, one_line, place, position, spent
from ..model import ViewModel
from ..summary import printable, wrapped
from .documents import unpacked

#: Functions, and lines of each of their lists, that are told; the rest is counted.
FUNCTIONS, LINES = 8, 12


def explorer_text(session: Any, encoding: str | None = None) -> str:
    """What `session.explore()` shows, as text of at most 100 columns (only a word longer than that goes beyond).

    `encoding`: what the text has to be printable in; by default that of standard output.
    """
    documents = [unpacked(row[1]) for row in ViewModel(session, text_budget=0).snapshot()["rows"].get("functions", [])]
    text = render(documents, explain_gaps(session).get("recompiles"))
    return printable(text, encoding or getattr(sys.stdout, "encoding", None) or "utf-8")


def render(documents: list[dict[str, Any]], gap: str | None) -> str:
    """The text of the explorer's documents; `gap`: why recompiles were not observed, if they were not."""
    found = sorted((d for d in documents if d["recompiles"]), key=lambda d: (-(d["lost_s"] or 0), -d["recompiles"]))
    lines = [line for number, document in enumerate(found[:FUNCTIONS], 1) for line in _function(number, document)]
    if not found and gap is None:
        lines = ["Nothing was recompiled."]
    if len(found) > FUNCTIONS:
        lines.append(f"... and {len(found) - FUNCTIONS} more functions")
    if gap is not None:
        lines += wrapped(f"Not observed: recompiles: {gap}", "", "  ")
    return "\n".join(lines) + "\n"


def _function(number: int, document: dict[str, Any]) -> list[str]:
    lost = f", {spent(document['lost_s'])} lost" if document["lost_s"] is not None else ""
    where = place(document["function"], document["file"], document["line"])
    head = f"{where}: {counted(document['recompiles'], 'recompile')}, {counted(document['compiles'], 'compile')}{lost}"
    once, eager = document["once"], document["eager"]
    if once and once["count"]:
        head += f"; {counted(once['count'], 'entry', 'entries')} called once, {spent(once['seconds'])}"
    if eager and eager["calls"]:
        head += f"; {counted(eager['calls'], 'call')} ran eagerly, {spent(eager['total_s'])}"
    return [
        *wrapped(head, f"{number}. ", "   "),
        f"   entries, in the order of a look-up{'' if document['eager'] else ' (calls are not counted)'}:",
        *_some([line for entry in sorted(document["entries"], key=_turn) for line in _entry(entry, document)]),
        "   recompiles, and what failed in which entry (* the closest):",
        *_some([line for row in document["rows"] for line in _recompile(row, document)]),
        "   guards:",
        *_some([line for guard in document["guards"] for line in _guard(guard)]),
        "",
    ]


def _some(lines: list[str]) -> list[str]:
    rest = len(lines) - LINES
    return lines if rest <= 0 else [*lines[:LINES], f"     ... and {rest} more lines"]


def _turn(entry: dict[str, Any]) -> tuple[bool, int]:
    return entry["order"] is None, entry["order"] or 0


def _entry(entry: dict[str, Any], document: dict[str, Any]) -> list[str]:
    by = entry["made_at"]
    failed = ", ".join(f"{document['guards'][guard]['name']} {count}x" for guard, count, *_ in entry["failed"])
    parts = [
        "compiled before this watched"
        if entry["event"] is None
        else "the first"
        if by is None
        else _cause(by, document),
        f"{spent(entry['seconds'])}" if entry["seconds"] is not None else None,
        f"{entry['guard_count']} guards" if entry["guard_count"] is not None else None,
        f"{entry['guard_latency_us']:.0f} us a check" if entry["guard_latency_us"] is not None else None,
        _called(entry),
        f"failed: {failed}" if failed else None,
    ]
    return wrapped(f"{entry['compile_id']}  {'; '.join(filter(None, parts))}", "     ", "       ")


def _called(entry: dict[str, Any]) -> str | None:
    """None where nobody counted."""
    if entry["calls"] is None:
        return None
    pays = f", pays after {entry['break_even']}" if entry["break_even"] is not None else ""
    return f"{counted(entry['calls'], 'call')}{pays}"


def _cause(at: int, document: dict[str, Any]) -> str:
    row = document["rows"][at]
    name = "a guard" if row["guard"] is None else document["guards"][row["guard"]]["name"]
    if row["expected"] is None and row["now"] is None:
        return f"{one_line(name)} failed"
    return f"{one_line(name)}: {one_line(row['expected'] or '?', 60)} -> {one_line(row['now'] or '?', 60)}"


def _recompile(row: dict[str, Any], document: dict[str, Any]) -> list[str]:
    lost = f"  {spent(row['lost_s'])}" if row["lost_s"] is not None else ""
    names, ids = [g["name"] for g in document["guards"]], [e["compile_id"] for e in document["entries"]]
    failed = "; ".join(
        f"{ids[entry]}{'*' if entry == row['closest'] else ''} {', '.join(names[f[0]] for f in found)}"
        for entry, found in row["cells"]
    )
    clock = datetime.fromtimestamp(row["time"] / 1e3).strftime("%H:%M:%S")
    head = f"{row['compile_id']}  {clock}  {_cause(document['rows'].index(row), document)}{lost}"
    return wrapped(f"{head}  [{one_line(failed)}]" if failed else head, "     ", "       ")


def _guard(guard: dict[str, Any]) -> list[str]:
    where = position(guard["user_file"], guard["user_line"])
    seen = ", ".join(one_line(value, 40) for value, _ in guard["values"][:8])
    parts = [
        f"{guard['name']} ({', '.join(guard['kinds']).replace('_', ' ')})",
        f"at {where}" if where else None,
        f"seen: {seen}" if seen else None,
        guard["verdict"],
    ]
    return wrapped("; ".join(filter(None, parts)), "     ", "       ")
