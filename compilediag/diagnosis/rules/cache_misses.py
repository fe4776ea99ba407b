"""Explain a cache miss in words: what was looked up, the nearest earlier key, what differs, and what to do."""

from __future__ import annotations

from collections.abc import Iterable

from ...errors import CompilediagError
from ...events import CacheLookup, Rows, SourceStatus
from ...formatting import escape_lines, format_function
from ..evidence import get_place

MISSES = ("miss", "guard_miss")
#: What the caches are, in words.
NAMES = {"fx_graph": "Inductor's cache of compiled graphs", "aot_autograd": "AOTAutograd's cache"}
#: What the name of a component of a key begins with -> what a difference in it means. The first that fits counts.
ADVICE = (
    (
        "inductor_config",
        "Inductor's configuration differs: compile both with the same options to use the entry.",
    ),
    ("autograd_config", "AOTAutograd's configuration differs: compile both with the same settings to use the entry."),
    ("cpp_runtime_thread_count", "The number of threads differs: call torch.set_num_threads(n) with the same n."),
    (
        "torch_version",
        "Another build of torch made the earlier entry: the first compiles with a new build always miss.",
    ),
    ("system_info", "Another device or driver made the earlier entry."),
    ("example_inputs", "The inputs differ: torch keeps one entry for each combination of shapes, strides and dtypes."),
    ("constant[", "A constant in the code has another value: pass it as a tensor to keep it out of the key."),
    ("graph", "The traced code differs: a number in the code is part of the key; pass it as a tensor to keep it out."),
)
LOST = "Same key as before, but its entry was deleted or never saved."
LOST_ADVICE = (
    "Check that the cache directory (TORCHINDUCTOR_CACHE_DIR) is the same, was not cleared, and can be written."
)
FIRST = "This is the first lookup of this function: there is no earlier key to compare with."
UNSEEN = 'The parts of its key were not recorded. To compare keys, record with detail="full".'
UNCOMPARED = "Keys of this cache are not compared with earlier ones."
GUARDED = "An entry with this key exists, but its guards failed for these inputs"


def explain_miss(data: Rows, event_id: int) -> str:
    """Explain why the lookup `event_id` missed, as plain text of a few lines.

    KeyError if `data` has no such lookup, CompilediagError if it was not a miss.
    """
    row = next((row for row in data.rows(CacheLookup) if row.event_id == event_id), None)
    if row is None:
        raise KeyError(f"no cache lookup has the event id {event_id}")
    if row.outcome not in MISSES:
        raise CompilediagError(f"event {event_id} is not a cache miss: {row.cache} {row.outcome}")
    lines = [_describe_lookup(row), *list_miss_reasons(row, has_key_parts(data.rows(SourceStatus)))]
    return escape_lines("\n".join(lines))


def _describe_lookup(row: CacheLookup) -> str:
    where = format_function(*get_place(row))
    which = f", compile {row.compile_id}" if row.compile_id else ""
    cache = NAMES.get(row.cache or "", f"the cache {row.cache}")
    tier = f" ({row.tier})" if row.tier else ""
    return f"{where}{which}: missed in {cache}{tier}, key {row.key or 'unknown'}"


def list_miss_reasons(row: CacheLookup, has_parts: bool) -> list[str]:
    """The lines on why a lookup missed; the differences are indented. `has_parts`: the parts of keys were recorded."""
    if row.outcome == "guard_miss":
        return [f"{GUARDED}: {row.guard}" if row.guard else f"{GUARDED}."]
    if row.nearest_key is None and row.cache not in NAMES:
        return [row.reason or UNCOMPARED]
    return [*([f"torch's reason: {row.reason}"] if row.reason else []), *_compare_keys(row, has_parts)]


def _compare_keys(row: CacheLookup, has_parts: bool) -> list[str]:
    if row.nearest_key is None:
        return [FIRST if has_parts else UNSEEN]
    if row.nearest_key == row.key:
        return [LOST + (f" The key is from {row.nearest_session}." if row.nearest_session else ""), LOST_ADVICE]
    nearest = f"Nearest earlier key, from {row.nearest_session or 'this session'}: {row.nearest_key}"
    if not row.key_diff:
        return [nearest, "The recorded parts of the two keys are equal."]
    return [nearest, "What differs:", *(f"  {difference}" for difference in row.key_diff), *_advise(row.key_diff)]


def _advise(differences: list[str]) -> list[str]:
    """What the first kind of difference means; the others follow from it."""
    return next(([text] for head, text in ADVICE if any(d.startswith(head) for d in differences)), [])


def get_component(difference: str) -> str:
    """The component of a key that a text of `CacheLookup.key_diff` is about: `name` of `name: old -> new`."""
    return difference.partition(": ")[0]


def has_key_parts(states: Iterable[SourceStatus]) -> bool:
    """True if the parts of keys were recorded."""
    return any(state.name == "keys" and state.status == "active" for state in states)
