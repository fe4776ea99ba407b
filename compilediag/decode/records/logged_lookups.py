"""The lookups and stores in caches that a trace log mentions, each as one row.

torch reports a lookup in FxGraphCache or AOTAutogradCache twice: as an instant timed event, then as an artifact with
the same key. A lookup of a graph that XX
Profiles (PGO) are artifacts without a key; the timed event around one has key and size, and ends after it.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from ...events import CacheLookup
from ..cache_keys.nearest_key import KeyHistory
from .attempts import Attempts, CompileAttempt
from .cache_records import CACHE_EVENT, NOT_PICKLED, parse_cache_event
from .trace_log import Record

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
            yield self._history.compare(row, arguments.get("components") or ())

    def decode_artifact(
        self, name: str, record: Record, attempt: CompileAttempt, time_ns: int
    ) -> Iterator[CacheLookup]:
        """Yield the lookup or store that an artifact reports, unless an event announced it."""
        if (profile := _PROFILE.match(name)) is not None:
            self._profiles[name] = self._make_profile_row(profile, attempt, time_ns)
        elif name == PICKLE_FAILURE:
            yield self._make_failed_store(json.loads(record.text), attempt, time_ns)
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
            attempt = self._attempts.get(_read_id(arguments))
            miss = self._add_function(CacheLookup(time_ns=time_ns, cache="pgo", tier="remote"), attempt)
            yield dataclasses.replace(miss, action="look_up", outcome="miss", key=str(key))

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
        return self._history.compare(dataclasses.replace(row, outcome=outcome), components)

    def _decode_lookup(
        self, found: re.Match[str], fields: Mapping[str, Any], attempt: CompileAttempt, time_ns: int
    ) -> Iterator[CacheLookup]:
        outcome = found["outcome"] if found["outcome"] in _OUTCOMES else fields.get("cache_state")
        arguments = {**fields, "compile_id": attempt.compile_id}
        if found["outcome"] == "hash" and outcome is None:
            yield from self._open_lookup(found["cache"], arguments, attempt, time_ns)
            return
        row = self._parse(f"{found['cache']}_cache_{outcome}", arguments, time_ns)
        if row is None:
            return
        if found["bundled"]:
            row = dataclasses.replace(row, reason=BUNDLED)
        elif self._was_announced(_identify(row)):
            return
        yield self._history.compare(row, fields.get("components") or ())

    def _open_lookup(
        self, cache: str, arguments: Mapping[str, Any], attempt: CompileAttempt, time_ns: int
    ) -> Iterator[CacheLookup]:
        """Remember a lookup without an outcome; yield the one before it, which has hit."""
        if attempt in self._open:
            yield self._close(attempt, "hit")
        row = self._parse(f"{cache}_cache_miss", arguments, time_ns)
        if row is not None:
            self._open[attempt] = row, arguments.get("components") or []

    def _was_announced(self, identity: _Identity) -> bool:
        """Return whether an event announced a row; the next row like it then needs an event of its own."""
        left = self._announced.pop(identity, 0) - 1
        if left > 0:
            self._announced[identity] = left
        return left >= 0

    def _parse(self, name: str, arguments: Mapping[str, Any], time_ns: int) -> CacheLookup | None:
        attempt = self._attempts.get(_read_id(arguments))
        function = self._attempts.find_function(attempt).as_columns()
        return parse_cache_event(name, arguments, time_ns, attempt.compile_key, function)

    def _make_profile_row(self, found: re.Match[str], attempt: CompileAttempt, time_ns: int) -> CacheLookup:
        action, outcome = ("look_up", "hit") if found["action"] == "get" else ("store", "saved")
        row = CacheLookup(time_ns=time_ns, cache="pgo", tier=found["tier"], action=action, outcome=outcome)
        return self._add_function(row, attempt)

    def _make_failed_store(self, fields: Mapping[str, Any], attempt: CompileAttempt, time_ns: int) -> CacheLookup:
        reason = f"{NOT_PICKLED}: {fields.get('error')}"
        row = CacheLookup(time_ns=time_ns, cache="aot_autograd", tier="local", action="store", outcome="failed")
        return self._add_function(dataclasses.replace(row, reason=reason), attempt)

    def _add_function(self, row: CacheLookup, attempt: CompileAttempt) -> CacheLookup:
        function = self._attempts.find_function(attempt)
        return dataclasses.replace(
            row,
            compile_id=attempt.compile_id,
            compile_key=attempt.compile_key,
            function=function.function,
            file=function.file,
            line=function.line,
        )


def is_lookup_event(name: str) -> bool:
    """Return whether an instant timed event announces a lookup."""
    return CACHE_EVENT.match(name) is not None


def _identify(row: CacheLookup) -> _Identity:
    outcome = "miss" if row.outcome == "guard_miss" else row.outcome
    return row.cache, outcome, row.key


def _read_id(arguments: Mapping[str, Any]) -> str | None:
    logged_id = arguments.get("compile_id")
    return None if logged_id in (None, "None") else str(logged_id)
