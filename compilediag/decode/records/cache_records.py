"""Operations on the compile-time caches, as `CacheLookup`s.

Several hooks fill in a `LookUp`, a `CacheStore` or a `Fetch` while torch looks up an entry, stores one, or talks to a
server; the `make_*` functions turn them into rows. A look-up has a row for the local tier, with its outcome, and one
for the remote tier if torch asked it. An entry that only the remote tier has is a miss of the local one.

`LoggedLookups` reads them from a trace log. torch reports a lookup in FxGraphCache or AOTAutogradCache twice: as an
instant timed event, then as an artifact with the same key. Profiles (PGO) are artifacts without a key; the timed event
around one has key and size, and ends after it.
"""

from __future__ import annotations

import ast
import dataclasses
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ...events import CacheLookup
from ...system.interrupts import pass_on
from ..cache_keys import KeyHistory
from .record_kinds import Attempts, CompileAttempt
from .trace_log import Record

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
class Operation:
    """What a source notes of any operation on a cache. `frame`: the function whose compile it is part of."""

    cache: str
    time_ns: int
    compile_id: str | None = None
    compile_key: str | None = None
    frame: Mapping[str, Any] = field(default_factory=dict)
    key: str | None = None
    bytes: int | None = None
    duration_s: float | None = None


@dataclass(slots=True)
class Fetch(Operation):
    """One get or put of a remote cache.

    `is_raised`: the get or put raised `trouble`; otherwise torch caught it. `is_given_up`: torch had dropped the
    connection earlier, so it did not ask the server.
    """

    is_put: bool = False
    taken_s: float | None = None
    trouble: Trouble | None = None
    is_raised: bool = False
    is_given_up: bool = False


@dataclass(slots=True)
class LookUp(Operation):
    """One look-up in FxGraphCache or AOTAutogradCache.

    `found` is the tier that has an entry whose guards hold; `outcome` is the outcome by torch's counters. `troubles`:
    tier -> why its entries could not be loaded. `entry`: columns of the entry that was found.
    """

    components: list[str] | None = None
    is_local: bool = True
    found: str | None = None
    guard: str | None = None
    troubles: dict[str, Trouble] = field(default_factory=dict)
    fetch: Fetch | None = None
    entry: dict[str, Any] = field(default_factory=dict)
    outcome: str = "miss"
    reason: str | None = None
    exception_type: str | None = None


@dataclass(slots=True)
class CacheStore(Operation):
    """One store in FxGraphCache or AOTAutogradCache; `bytes` are those that reached the disk."""

    is_local: bool = True
    entry: dict[str, Any] = field(default_factory=dict)
    trouble: Trouble | None = None
    is_bypass: bool = False


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


def make_store_row(store: CacheStore, action: str = "store", outcome: str = "saved") -> CacheLookup:
    """Make the row of a store, or of a module that torch wrote to disk again because its entry was found.

    A store in the remote tier alone gets a row only if it failed.
    """
    columns: dict[str, Any] = {**store.entry, "bytes": store.bytes, "outcome": outcome}
    if store.trouble is not None:
        outcome = "bypass" if store.is_bypass else "failed"
        columns.update(outcome=outcome, reason=store.trouble.text, exception_type=store.trouble.type)
    return _make_row(store, "local" if store.is_local else "remote", action, columns)


def _make_row(record: Operation, tier: str, action: str, columns: Mapping[str, Any]) -> CacheLookup:
    return CacheLookup(
        time_ns=record.time_ns,
        compile_id=record.compile_id,
        compile_key=record.compile_key,
        duration_s=record.duration_s,
        cache=record.cache,
        key=record.key,
        tier=tier,
        action=action,
        **{**frame_columns(record.frame), **columns},
    )


def frame_columns(frame: Mapping[str, Any]) -> dict[str, Any]:
    """Return the columns of the function whose compile a row is part of."""
    return {name: frame.get(name) for name in ("function", "file", "line")}


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
    return CacheLookup(
        time_ns=time_ns,
        compile_id=_as_text(metadata.get("compile_id")),
        compile_key=compile_key,
        **frame_columns(frame or {}),
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


#: Name of an artifact -> its cache and its outcome. torch 2.4 to 2.6 have the outcome only in some texts: `hash`.
_ARTIFACT = re.compile(r"(?P<cache>fx_graph|(?:aot)?autograd)(?P<bundled>_bundled)?_cache_(?P<outcome>[a-z_]+)$")
#: The start of such an artifact: it is parsed only if no event announced its key.
_KEY = re.compile(r'\{(?:"cache_status_detailed": "\w+", )?"key": "([^"\\]+)"')
#: Cache, outcome and key of a lookup.
_Identity = tuple[str | None, str | None, str | None]
_OUTCOMES = frozenset({"hit", "miss", "bypass", "disabled"})
#: The reason of a graph that its AOTAutogradCache entry contains, so that nothing was looked up in FxGraphCache.
BUNDLED = "the aot_autograd entry contains the graph"
PICKLE_FAILURE = "aotautograd_cache_pickle_failure"
#: Name of an artifact about a profile, and of the timed event around it behind `pgo.`.
_PROFILE = re.compile(r"(?:pgo\.)?(?P<action>get|put)_(?:extra_)?(?P<tier>local|remote)_code_state$")
#: The names of timed events about profiles begin with it.
PROFILES = "pgo."
#: Records that show the outcome of a lookup of torch 2.4: a compile has the first two.
_OF_A_COMPILE = frozenset({"inductor_post_grad_graph", "inductor_output_code"})
AFTER_A_LOOKUP = _OF_A_COMPILE | {"dynamo_guards", "dynamo_cpp_guards_str", "compilation_metrics"}
#: Announcements and profiles that wait for their other half: a log may have none.
MAX_WAITING = 10_000


class LoggedLookups:
    """Makes the rows of one process's lookups, given the timed events and artifacts that report them."""

    def __init__(self, attempts: Attempts) -> None:
        self._attempts = attempts
        self._history = KeyHistory()
        #: (cache, outcome, key) of the events whose artifacts have not come.
        self._announced: Counter[_Identity] = Counter()
        #: Name of a profile's artifact -> its row, until its timed event ends.
        self._profiles: dict[str, CacheLookup] = {}
        #: A lookup whose outcome the log does not have yet, and its components.
        self._open: dict[CompileAttempt, tuple[CacheLookup, list[str]]] = {}

    def decode_event(self, name: str, arguments: Mapping[str, Any], time_ns: int) -> Iterator[CacheLookup]:
        """Yield the lookup that an instant event announces."""
        row = self._parse(name, arguments, time_ns)
        if row is not None:
            if row.outcome != "disabled" and len(self._announced) < MAX_WAITING:
                self._announced[_identify(row)] += 1
            yield self._compare(row, arguments)

    def decode_artifact(
        self, name: str, record: Record, attempt: CompileAttempt, time_ns: int
    ) -> Iterator[CacheLookup]:
        """Yield the lookup or store that an artifact reports, unless an event announced it."""
        if (profile := _PROFILE.match(name)) is not None:
            action, outcome = ("look_up", "hit") if profile["action"] == "get" else ("store", "saved")
            self._profiles[name] = self._make_row(attempt, time_ns, "pgo", profile["tier"], action, outcome)
        elif name == PICKLE_FAILURE:
            reason = f"{NOT_PICKLED}: {json.loads(record.text).get('error')}"
            yield self._make_row(attempt, time_ns, "aot_autograd", "local", "store", "failed", reason=reason)
        elif (found := _ARTIFACT.match(name)) is not None:
            text = record.text
            key = _KEY.match(text)
            cache = "fx_graph" if found["cache"] == "fx_graph" else "aot_autograd"
            if key is None or found["bundled"] or not self._was_announced((cache, found["outcome"], key[1])):
                yield from self._decode_lookup(found, json.loads(text), attempt, time_ns)

    def end_timed(self, name: str, arguments: Mapping[str, Any], time_ns: int) -> Iterator[CacheLookup]:
        """Yield the profile that was read or written within the timed event that ends, one of `PROFILES`."""
        row = self._profiles.pop(name.removeprefix(PROFILES), None)
        key, size = arguments.get("cache_key"), arguments.get("cache_size_bytes")
        if row is not None:
            yield dataclasses.replace(row, key=None if key is None else str(key), bytes=size)
        elif name == "pgo.get_remote_code_state" and key is not None:
            # torch opens this event only if there is a remote cache, and writes an artifact only if it has the profile.
            attempt = self._attempts.get(_as_text(arguments.get("compile_id")))
            yield self._make_row(attempt, time_ns, "pgo", "remote", "look_up", "miss", key=str(key))

    def see_kind(self, kind: str, attempt: CompileAttempt) -> Iterator[CacheLookup]:
        """Yield the lookup of an attempt whose outcome the next record of the attempt shows; `kind` is its kind."""
        if attempt in self._open and kind in AFTER_A_LOOKUP:
            yield self._close(attempt, "miss" if kind in _OF_A_COMPILE else "hit")

    def finish(self) -> Iterator[CacheLookup]:
        """Yield what waited for later records until the log ended."""
        yield from [self._close(attempt, "hit") for attempt in list(self._open)]
        yield from self._profiles.values()
        self._profiles.clear()

    def _close(self, attempt: CompileAttempt, outcome: str) -> CacheLookup:
        row, components = self._open.pop(attempt)
        return self._compare(dataclasses.replace(row, outcome=outcome), {"components": components})

    def _compare(self, row: CacheLookup, fields: Mapping[str, Any]) -> CacheLookup:
        """The lookup with the nearest earlier key. The parts of its own key are in the artifact that torch logs."""
        return self._history.compare(row, fields.get("components") or ())[0]

    def _decode_lookup(
        self, found: re.Match[str], fields: Mapping[str, Any], attempt: CompileAttempt, time_ns: int
    ) -> Iterator[CacheLookup]:
        outcome = found["outcome"] if found["outcome"] in _OUTCOMES else fields.get("cache_state")
        arguments = {**fields, "compile_id": attempt.compile_id}
        has_outcome = found["outcome"] != "hash" or outcome is not None
        if not has_outcome and attempt in self._open:
            yield self._close(attempt, "hit")
        row = self._parse(f"{found['cache']}_cache_{outcome if has_outcome else 'miss'}", arguments, time_ns)
        if row is None:
            return
        if not has_outcome:
            self._open[attempt] = row, fields.get("components") or []
            return
        if found["bundled"]:
            row = dataclasses.replace(row, reason=BUNDLED)
        elif self._was_announced(_identify(row)):
            return
        yield self._compare(row, fields)

    def _was_announced(self, identity: _Identity) -> bool:
        """Return whether an event announced a row; the next row like it then needs an event of its own."""
        left = self._announced.pop(identity, 0) - 1
        if left > 0:
            self._announced[identity] = left
        return left >= 0

    def _parse(self, name: str, arguments: Mapping[str, Any], time_ns: int) -> CacheLookup | None:
        attempt = self._attempts.get(_as_text(arguments.get("compile_id")))
        function = self._attempts.find_function(attempt)
        return parse_cache_event(name, arguments, time_ns, attempt.compile_key, function)

    def _make_row(
        self, attempt: CompileAttempt, time_ns: int, cache: str, tier: str, action: str, outcome: str, **columns: Any
    ) -> CacheLookup:
        return CacheLookup(
            time_ns=time_ns,
            compile_id=attempt.compile_id,
            compile_key=attempt.compile_key,
            cache=cache,
            tier=tier,
            action=action,
            outcome=outcome,
            **self._attempts.find_function(attempt),
            **columns,
        )


def _identify(row: CacheLookup) -> _Identity:
    outcome = "miss" if row.outcome == "guard_miss" else row.outcome
    return row.cache, outcome, row.key
