"""Operations on the compile-time caches, as `CacheLookup`s.

Several hooks fill in a `LookUp`, a `CacheStore` or a `Fetch` while torch looks up an entry, stores one, or talks to a
server; the `make_*` functions turn them into rows. A look-up has a row for the local tier, with its outcome, and one
for the remote tier if torch asked it. An entry that only the remote tier has is a miss of the local one.
"""

from __future__ import annotations

import ast
import dataclasses
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ...events import CacheLookup
from ...interrupts import pass_on

#: Name of the instant event -> (cache, outcome), and the name that AOTAutograd's own artifact uses.
CACHE_EVENT = re.compile(r"(?P<cache>fx_graph|(?:aot)?autograd)_cache_(?P<outcome>hit|miss|bypass|disabled)$")
#: A part of the name of torch's class of a remote cache -> the value of the `cache` column.
REMOTE = {"FxGraph": "fx_graph", "AOTAutograd": "aot_autograd", "Autotune": "autotune", "PGO": "pgo"}
#: Prefixes of the reason of a failed store.
NOT_PICKLED, NOT_WRITTEN, NOT_SAVED = "not pickled", "not written", "not saved"

LOCAL_OFF = "the local tier is off"
#: Prefix of the reason of a look-up that did not ask all tiers.
NOT_SEARCHED = "the entries could not be searched"
#: The same where torch continues as if there were no entry: since 2.15.
NOT_LISTED = "the entries could not be listed"


@dataclass(slots=True)
class Trouble:
    """An exception as text, so that it keeps no frames alive."""

    type: str | None
    text: str
    #: Of a store: True if the entry was pickled and could not be written to a tier.
    is_write: bool = False


@dataclass(slots=True)
class Fetch:
    """One get or put of a remote cache.

    `is_raised`: the get or put raised `trouble`; otherwise torch caught it. `is_given_up`: torch had dropped the
    connection earlier, so it did not ask the server.
    """

    cache: str
    is_put: bool
    key: str | None
    time_ns: int
    compile_id: str | None = None
    frame: Mapping[str, Any] = field(default_factory=dict)
    duration_s: float | None = None
    bytes: int | None = None
    taken_s: float | None = None
    trouble: Trouble | None = None
    is_raised: bool = False
    is_given_up: bool = False
    compile_key: str | None = None


@dataclass(slots=True)
class LookUp:
    """One look-up in FxGraphCache or AOTAutogradCache.

    `found` is the tier that has an entry whose guards hold; `outcome` is the outcome by torch's counters. `troubles`:
    tier -> why its entries could not be loaded. `entry`: columns of the entry that was found.
    """

    cache: str
    time_ns: int
    compile_id: str | None = None
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
    compile_key: str | None = None


@dataclass(slots=True)
class CacheStore:
    """One store in FxGraphCache or AOTAutogradCache; `bytes` are those that reached the disk."""

    cache: str
    time_ns: int
    compile_id: str | None = None
    frame: Mapping[str, Any] = field(default_factory=dict)
    key: str | None = None
    is_local: bool = True
    bytes: int | None = None
    entry: dict[str, Any] = field(default_factory=dict)
    trouble: Trouble | None = None
    is_bypass: bool = False
    duration_s: float | None = None
    compile_key: str | None = None


# Rows


def make_lookup_rows(look: LookUp) -> list[CacheLookup]:
    """Make a row for each tier that was asked, the local one first."""
    trouble = look.troubles.get("local")
    columns: dict[str, Any] = {"outcome": look.outcome}
    columns["reason"] = look.reason or (f"an entry could not be loaded: {trouble.text}" if trouble else None)
    columns["exception_type"] = look.exception_type or (trouble.type if trouble else None)
    columns["guard"] = look.guard
    if look.found == "local":
        columns.update(look.entry, bytes=look.bytes)
    elif look.outcome == "hit":
        columns["outcome"] = "miss" if look.is_local else "disabled"
    if not look.is_local:
        columns["reason"] = columns["reason"] or LOCAL_OFF
    local = _make_row(look, "local", "look_up", columns)
    return [local] if look.fetch is None else [local, _make_remote_row(look, look.fetch)]


def _make_remote_row(look: LookUp, fetch: Fetch) -> CacheLookup:
    """Make the row of the remote tier: what the server answered, and whether the look-up could use it."""
    columns = _describe_fetch(fetch)
    trouble = look.troubles.get("remote")
    if columns["outcome"] != "hit":
        pass
    elif look.found == "remote" and look.outcome == "hit":
        columns.update(look.entry)
    elif look.found == "remote":
        columns.update(outcome="failed", reason=look.reason, exception_type=look.exception_type)
    elif trouble is not None:
        reason = f"the entry could not be loaded: {trouble.text}"
        columns.update(outcome="failed", reason=reason, exception_type=trouble.type)
    elif look.guard is not None:
        columns.update(outcome="guard_miss", guard=look.guard)
    else:
        columns.update(outcome="failed", reason="the entry could not be loaded")
    return _make_row(fetch, "remote", "look_up", columns)


def make_fetch_row(fetch: Fetch) -> CacheLookup:
    """Make the row of one get or put of a remote cache."""
    return _make_row(fetch, "remote", "store" if fetch.is_put else "look_up", _describe_fetch(fetch))


def _describe_fetch(fetch: Fetch) -> dict[str, Any]:
    columns: dict[str, Any] = {"bytes": fetch.bytes, "taken_s": fetch.taken_s}
    if fetch.trouble is not None:
        what = "put" if fetch.is_put else "get"
        reason = f"the {what} raised {fetch.trouble.text}" if fetch.is_raised else fetch.trouble.text
        return {**columns, "outcome": "failed", "reason": reason, "exception_type": fetch.trouble.type}
    if fetch.is_given_up:
        reason = "torch stopped using the server after a failed connection"
        return {**columns, "outcome": "disabled", "reason": reason}
    if fetch.is_put:
        return {**columns, "outcome": "saved"}
    return {**columns, "outcome": "miss" if fetch.bytes is None else "hit"}


def make_store_row(store: CacheStore) -> CacheLookup:
    """Make the row of a store. A store in the remote tier alone gets one only if it failed."""
    columns: dict[str, Any] = {**store.entry, "bytes": store.bytes, "outcome": "saved"}
    if store.trouble is not None:
        outcome = "bypass" if store.is_bypass else "failed"
        columns.update(outcome=outcome, reason=store.trouble.text, exception_type=store.trouble.type)
    return _make_row(store, "local" if store.is_local else "remote", "store", columns)


def make_write_row(write: CacheStore) -> CacheLookup:
    """Make the row of a module that torch wrote to disk again because its entry was found."""
    columns: dict[str, Any] = {"outcome": "written", "bytes": write.bytes}
    if write.trouble is not None:
        columns.update(outcome="failed", reason=write.trouble.text, exception_type=write.trouble.type)
    return _make_row(write, "local", "write", columns)


def _make_row(record: Fetch | LookUp | CacheStore, tier: str, action: str, columns: Mapping[str, Any]) -> CacheLookup:
    frame = record.frame
    return CacheLookup(
        time_ns=record.time_ns,
        compile_id=record.compile_id,
        compile_key=record.compile_key,
        duration_s=record.duration_s,
        cache=record.cache,
        key=record.key,
        tier=tier,
        action=action,
        **{"function": frame.get("function"), "file": frame.get("file"), "line": frame.get("line"), **columns},
    )


def add_frame(row: CacheLookup, frame: Mapping[str, Any]) -> CacheLookup:
    """Return `row` with the function whose compile it is part of."""
    return dataclasses.replace(row, function=frame.get("function"), file=frame.get("file"), line=frame.get("line"))


def name_remote_cache(class_name: str) -> str:
    """Return the `cache` column of a remote cache; the name of its class if torch has a new kind."""
    return next((cache for part, cache in REMOTE.items() if part in class_name), class_name)


def describe_failing_guards(expression: str, holds: Callable[[str], bool], values: Mapping[str, Any]) -> str:
    """Return the guards of a cached entry that do not hold, with the values that they check.

    `expression` is torch's: guards joined by `and`. `holds` evaluates one of them. `values` are those of `L['t0']`,
    `L['t1']` and so on. If `expression` can't be split into guards, all of it is returned.
    """
    try:
        tree = ast.parse(expression, mode="eval").body
        parts = tree.values if isinstance(tree, ast.BoolOp) and isinstance(tree.op, ast.And) else [tree]
        texts = [ast.get_source_segment(expression, part) or ast.unparse(part) for part in parts]
        failing = [text for text in texts if not holds(text)]
    except Exception as error:
        pass_on(error)
        failing = []
    shown = " and ".join(failing or [expression])
    known = [f"{name} is {value}" for name, value in values.items() if name in shown]
    return f"{shown} ({', '.join(known)})" if known else shown


# Announcements


def parse_cache_event(
    name: str,
    metadata: Mapping[str, Any],
    time_ns: int,
    compile_key: str | None = None,
    frame: Mapping[str, Any] | None = None,
) -> CacheLookup | None:
    """Return the look-up that the instant event `name` announces; None for any other event."""
    found = CACHE_EVENT.match(name)
    if found is None:
        return None
    is_guard_miss = found["outcome"] == "miss" and metadata.get("cache_status_detailed") == "guard_miss"
    frame = frame or {}
    return CacheLookup(
        time_ns=time_ns,
        compile_id=_as_text(metadata.get("compile_id")),
        compile_key=compile_key,
        function=frame.get("function"),
        file=frame.get("file"),
        line=frame.get("line"),
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


def _as_text(value: object) -> str | None:
    return None if value in (None, "None") else str(value)


def _read_seconds(metadata: Mapping[str, Any], name: str, unit: float) -> float | None:
    value = metadata.get(name)
    return None if value is None else value / unit
