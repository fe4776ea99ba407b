"""A cache miss in words: what was looked up, the nearest earlier key, what differs, and what to do about it."""

from __future__ import annotations

from typing import Any

from ...errors import CompilediagError
from .. import wording
from ..rows import Row, place_in, rows_of

COLUMNS = (
    *("function", "file", "line", "cache", "tier", "outcome", "key", "reason", "guard"),
    *("nearest_key", "nearest_session", "key_diff"),
)
MISSES = ("miss", "guard_miss")
#: What the caches are, in words.
NAMES = {"fx_graph": "Inductor's cache of compiled graphs", "aot_autograd": "AOTAutograd's cache"}
#: What a difference begins with -> what it means. The first that fits counts.
ADVICE = (
    (
        "inductor_config",
        "Inductor's configuration differs: compile both under the same options, and the entry is found.",
    ),
    ("autograd_config", "AOTAutograd's configuration differs: compile both under the same settings."),
    ("cpp_runtime_thread_count", "torch.get_num_threads() differs: torch.set_num_threads(n) with the same n helps."),
    ("torch_version", "Another build of torch made the earlier entry: the first compiles under a new one all miss."),
    ("system_info", "Another device or driver made the earlier entry."),
    ("example_inputs", "The inputs differ: torch keeps one entry for each combination of shapes, strides and dtypes."),
    ("constant[", "A constant in the code has another value: passed in as a tensor it would not be part of the key."),
    ("graph", "The traced code differs: a number in it is part of the key, unless it is passed in as a tensor."),
)
GONE = (
    "The very same key was seen before: its entry is gone, or was never saved. A cache directory that was cleared or is"
    " another one (TORCHINDUCTOR_CACHE_DIR), or an entry that could not be written, looks like this."
)
FIRST = "No earlier key of this function is known, so there is nothing to compare: it is looked up for the first time."
UNSEEN = 'What its key is made of was not recorded: watch with detail="full".'
UNCOMPARED = "Keys of this cache are not told against earlier ones."
GUARDED = "An entry with this key was there, but its guards did not hold for these inputs"


def explain_miss(tables: Any, event_id: int) -> str:
    """Why the look-up `event_id` missed, as plain text of a few lines.

    KeyError if `tables` has no such look-up, CompilediagError if it was no miss.
    """
    row = next((r for r in rows_of(tables, "cache_lookups", COLUMNS) if r["event_id"] == event_id), None)
    if row is None:
        raise KeyError(f"there is no cache look-up with the event id {event_id}")
    if row["outcome"] not in MISSES:
        raise CompilediagError(f"event {event_id} is no miss: {row['cache']} {row['outcome']}")
    return "\n".join([_head(row), *why_missed(row, _full(tables))])


def _head(row: Row) -> str:
    where = wording.place(*place_in(row))
    which = f", compile {row['compile_id']}" if row["compile_id"] else ""
    cache = NAMES.get(row["cache"], f"the cache {row['cache']}")
    tier = f" ({row['tier']})" if row["tier"] else ""
    return f"{where}{which}: missed in {cache}{tier}, key {row['key'] or 'unknown'}"


def why_missed(row: Row, full: bool) -> list[str]:
    """The lines on why a miss missed; `full`: the parts of keys were recorded. What differs is indented."""
    if row["outcome"] == "guard_miss":
        return [f"{GUARDED}: {row['guard']}" if row["guard"] else f"{GUARDED}."]
    said = [f"torch's reason: {row['reason']}"] if row["reason"] else []
    if row["nearest_key"] is None and row["cache"] not in NAMES:
        return [row["reason"] or UNCOMPARED]
    if row["nearest_key"] is None:
        return [*said, FIRST if full else UNSEEN]
    when = f", seen {row['nearest_session']}" if row["nearest_session"] else ", of this session"
    if row["nearest_key"] == row["key"]:
        return [*said, f"{GONE}" + (f" It was seen {row['nearest_session']}." if row["nearest_session"] else "")]
    told = row["key_diff"] or []
    if not told:
        return [*said, f"Nearest earlier key{when}: {row['nearest_key']}", "Nothing that was recorded of them differs."]
    differs = [f"  {difference}" for difference in told]
    return [*said, f"Nearest earlier key{when}: {row['nearest_key']}", "What differs:", *differs, *_advice(told)]


def _advice(differences: list[str]) -> list[str]:
    """What the first differences mean; what follows from them is not said again."""
    return next(([text] for head, text in ADVICE if any(d.startswith(head) for d in differences)), [])


def _full(tables: Any) -> bool:
    """True if the parts of keys were recorded."""
    states = rows_of(tables, "sources", ("name", "status"))
    return any(row["name"] == "keys" and row["status"] == "active" for row in states)
