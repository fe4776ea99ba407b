"""What hooks learned of the compile-time caches, as `CacheLookup`s.

`LookUp`, `Store` and `Fetch` are filled in by several hooks while torch looks up, stores, or talks to a server;
`lookup_events`, `store_event` and `fetch_event` make rows of them. A look-up is a row for the local tier, which
says what it came to, and one for the remote tier where that was asked. What only the remote tier had is a miss
of the local one.
"""

from __future__ import annotations

import ast
import dataclasses
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ...events import CacheLookup

#: Name of the instant event -> (cache, outcome), and the name that AOTAutograd's own artifact uses.
CACHE_EVENT = re.compile(r"(?P<cache>fx_graph|(?:aot)?autograd)_cache_(?P<outcome>hit|miss|bypass|disabled)$")
#: A part of the name of torch's class of a remote cache -> what the `cache` column says.
REMOTE = {"FxGraph": "fx_graph", "AOTAutograd": "aot_autograd", "Autotune": "autotune", "PGO": "pgo"}
#: How the reason of a failed store begins.
NOT_PICKLED, NOT_WRITTEN, NOT_SAVED = "not pickled", "not written", "not saved"

LOCAL_OFF = "the local tier is off"
#: How the reason of a look-up begins whose tiers were not all asked.
NOT_SEARCHED = "the entries could not be gone through"


@dataclass(slots=True)
class Trouble:
    """An exception in words; what is kept of one holds no frames alive."""

    type: str | None
    text: str


@dataclass(slots=True)
class Fetch:
    """One get or put of a remote cache. `is_raised`: the trouble came out of it; otherwise torch swallowed it.

    `is_given_up`: torch had dropped the connection before, so that the server was not asked.
    """

    cache: str
    is_put: bool
    key: str | None
    time_ns: int
    compile_id: str | None = None
    compile_key: str | None = None
    frame: Mapping[str, Any] = field(default_factory=dict)
    duration_s: float | None = None
    bytes: int | None = None
    taken_s: float | None = None
    trouble: Trouble | None = None
    is_raised: bool = False
    is_given_up: bool = False


@dataclass(slots=True)
class LookUp:
    """One look-up of FxGraphCache or AOTAutogradCache.

    `found` is the tier that had an entry whose guards held; `outcome` is what became of it, by torch's counters.
    `troubles`: why the entries of a tier could not be loaded. `entry`: columns that the found entry fills in.
    """

    cache: str
    time_ns: int
    compile_id: str | None = None
    compile_key: str | None = None
    frame: Mapping[str, Any] = field(default_factory=dict)
    key: str | None = None
    components: list[str] | None = None
    is_local: bool = True
    found: str | None = None
    guard: str | None = None
    bytes: int | None = None
    troubles: dict[str, Trouble] = field(default_factory=dict)
    fetch: Fetch | None = None
    entry: dict[str, Any] = field(default_factory=dict)
    outcome: str = "miss"
    reason: str | None = None
    exception_type: str | None = None
    duration_s: float | None = None


@dataclass(slots=True)
class CacheStore:
    """One store of FxGraphCache or AOTAutogradCache; `bytes` are those that reached the disk."""

    cache: str
    time_ns: int
    compile_id: str | None = None
    compile_key: str | None = None
    frame: Mapping[str, Any] = field(default_factory=dict)
    key: str | None = None
    is_local: bool = True
    bytes: int | None = None
    entry: dict[str, Any] = field(default_factory=dict)
    trouble: Trouble | None = None
    is_bypass: bool = False
    duration_s: float | None = None


def make_lookup_rows(look: LookUp) -> list[CacheLookup]:
    """A row of each tier that was asked, the local one first."""
    trouble = look.troubles.get("local")
    reason = look.reason or (f"an entry could not be loaded: {trouble.text}" if trouble else None)
    columns: dict[str, Any] = {
        "outcome": look.outcome,
        "reason": reason if look.is_local else reason or LOCAL_OFF,
        "exception_type": look.exception_type or (trouble.type if trouble else None),
        "guard": look.guard,
    }
    if look.found == "local":
        columns.update(look.entry, bytes=look.bytes)
    elif look.outcome == "hit":
        columns["outcome"] = "miss" if look.is_local else "disabled"
    local = _make_row(look, tier="local", action="look_up", **columns)
    return [local] if look.fetch is None else [local, _make_remote_row(look, look.fetch)]


def _make_remote_row(look: LookUp, fetch: Fetch) -> CacheLookup:
    """What the remote tier answered, and whether the look-up could use it."""
    row = make_fetch_row(fetch)
    return row if row.outcome != "hit" else dataclasses.replace(row, **_remote_use(look))


def _remote_use(look: LookUp) -> dict[str, Any]:
    """The columns that say what the look-up could do with the entry that the remote tier gave."""
    trouble = look.troubles.get("remote")
    if look.found == "remote" and look.outcome == "hit":
        return look.entry
    if look.found == "remote":
        return {"outcome": "failed", "reason": look.reason, "exception_type": look.exception_type}
    if trouble is not None:
        reason = f"the entry could not be loaded: {trouble.text}"
        return {"outcome": "failed", "reason": reason, "exception_type": trouble.type}
    if look.guard is not None:
        return {"outcome": "guard_miss", "guard": look.guard}
    return {"outcome": "failed", "reason": "the entry could not be loaded"}


def make_fetch_row(fetch: Fetch) -> CacheLookup:
    """The row of one get or put of a remote cache."""
    action = "store" if fetch.is_put else "look_up"
    return _make_row(
        fetch, tier="remote", action=action, bytes=fetch.bytes, taken_s=fetch.taken_s, **_fetch_outcome(fetch)
    )


def _fetch_outcome(fetch: Fetch) -> dict[str, Any]:
    if fetch.trouble is not None:
        what = "put" if fetch.is_put else "get"
        reason = f"the {what} raised {fetch.trouble.text}" if fetch.is_raised else fetch.trouble.text
        return {"outcome": "failed", "reason": reason, "exception_type": fetch.trouble.type}
    if fetch.is_given_up:
        return {"outcome": "disabled", "reason": "torch gave the server up after an earlier failed connection"}
    if fetch.is_put:
        return {"outcome": "saved"}
    return {"outcome": "miss" if fetch.bytes is None else "hit"}


def make_store_row(store: CacheStore) -> CacheLookup:
    """The row of a store; of a remote tier without a local one only trouble is told here."""
    columns: dict[str, Any] = {**store.entry, "bytes": store.bytes, "outcome": "saved"}
    if store.trouble is not None:
        columns["outcome"] = "bypass" if store.is_bypass else "failed"
        columns.update(reason=store.trouble.text, exception_type=store.trouble.type)
    return _make_row(store, tier="local" if store.is_local else "remote", action="store", **columns)


def make_write_row(write: CacheStore) -> CacheLookup:
    """The row of a found entry's module that was put in place again."""
    columns: dict[str, Any] = {"outcome": "written"}
    if write.trouble is not None:
        columns = {"outcome": "failed", "reason": write.trouble.text, "exception_type": write.trouble.type}
    return _make_row(write, tier="local", action="write", bytes=write.bytes, **columns)


def _make_row(record: Fetch | LookUp | CacheStore, **columns: Any) -> CacheLookup:
    return CacheLookup(
        time_ns=record.time_ns,
        compile_id=record.compile_id,
        compile_key=record.compile_key,
        duration_s=record.duration_s,
        cache=record.cache,
        key=record.key,
        **_place_of(record.frame),
        **columns,
    )


def add_frame(row: CacheLookup, frame: Mapping[str, Any]) -> CacheLookup:
    """`row`, with the function whose compile it was."""
    return dataclasses.replace(row, **_place_of(frame))


def _place_of(frame: Mapping[str, Any]) -> dict[str, Any]:
    return {name: frame.get(name) for name in ("function", "file", "line")}


def name_remote_cache(class_name: str) -> str:
    """What the `cache` column says of a remote cache; the class's own name if torch has a new kind."""
    return next((kind for part, kind in REMOTE.items() if part in class_name), class_name)


def describe_failing_guards(expression: str, holds: Callable[[str], bool], values: Mapping[str, Any]) -> str:
    """Those guards of a cached entry that did not hold, with the values that they are about.

    `expression` is torch's, guards joined by `and`; `holds` evaluates one of them; `values` are those of
    `L['t0']`, `L['t1']` and so on. All of `expression` where it can't be taken apart.
    """
    try:
        tree = ast.parse(expression, mode="eval").body
        parts = tree.values if isinstance(tree, ast.BoolOp) and isinstance(tree.op, ast.And) else [tree]
        texts = [ast.get_source_segment(expression, part) or ast.unparse(part) for part in parts]
        failing = [text for text in texts if not holds(text)]
    except Exception:
        failing = []
    told = " and ".join(failing or [expression])
    known = [f"{name} is {value}" for name, value in values.items() if name in told]
    return f"{told} ({', '.join(known)})" if known else told


def parse_cache_event(
    name: str, metadata: Mapping[str, Any], time_ns: int, compile_key: str | None = None
) -> CacheLookup | None:
    """The look-up that the instant event `name` tells of; None if it is of something else."""
    found = CACHE_EVENT.match(name)
    if found is None:
        return None
    is_guard_miss = found["outcome"] == "miss" and metadata.get("cache_status_detailed") == "guard_miss"
    return CacheLookup(
        time_ns=time_ns,
        compile_id=_as_text(metadata.get("compile_id")),
        compile_key=compile_key,
        cache="fx_graph" if found["cache"] == "fx_graph" else "aot_autograd",
        tier="local",
        action="look_up",
        outcome="guard_miss" if is_guard_miss else found["outcome"],
        key=_as_text(metadata.get("key")),
        reason=_as_text(metadata.get("cache_bypass_reason")),
        exception_type=_as_text(metadata.get("cache_bypass_exception_type")),
        guard=_as_text(metadata.get("cache_status_guard_expr")) if is_guard_miss else None,
        taken_s=_read_seconds(metadata, "time_taken_ns", 1e9),
        saved_s=_read_seconds(metadata, "time_saved_ns", 1e9) or _read_seconds(metadata, "time_saved_ms", 1e3),
        forward_saved_s=_read_seconds(metadata, "forward_time_saved_ms", 1e3),
        backward_saved_s=_read_seconds(metadata, "backward_time_saved_ms", 1e3) or None,
    )


def _as_text(value: Any) -> str | None:
    return None if value in (None, "None") else str(value)


def _read_seconds(metadata: Mapping[str, Any], name: str, unit: float) -> float | None:
    value = metadata.get(name)
    return None if value is None else value / unit
