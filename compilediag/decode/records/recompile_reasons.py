"""Why a compile was a recompile: torch's reasons, completed by the guards and symbols that are logged after them.

A reason has the value that the earlier entry needs, and often not the one that its guard met. The new entry has that
one: where `n == 1` failed and the new entry has `n == 2`, n was 2.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice

from ...events import GuardFailure, Recompile
from ..call_stacks import is_torch_file
from ..guards.failed_guards import FailedEntry, FailingGuard, make_recompile_events, parse_entry
from ..guards.guard_forms import parse_class_name
from ..guards.guard_text import ParsedGuard, TensorCheck, parse_guard
from ..guards.path import Path, format_source, scan_source
from .record_kinds import Attempts, CompileAttempt
from .trace_log import FileNames

#: (source, kind of guard) -> value.
Values = dict[tuple[str | None, str], str]

#: Guards on tensors that are remembered for one entry.
MAX_TENSORS = 1_000

#: A leaf of the guard tree as torch prints it, after a line end: `^` is ten times slower.
_LEAF = re.compile(r"\n[| +-]*\+- (?P<leaf>[A-Z_0-9]+): (?P<code>.*)")
_TENSOR_LEAF = re.compile(r"\n[| +-]*\+- TENSOR_MATCH: (.*)")
_MANAGER = re.compile(r"Manager: source=")
_LAST_NAME = re.compile(r"\w+(?=\W*$)")
#: Kinds of guards that name a size or a number by its source.
_BY_SOURCE = ("symbolic_shape", "tensor_size", "value")


def read_guard_values(text: str, sources: Iterable[str | None]) -> Values:
    """Return the values of `sources` in a printed guard tree, or in the list of guards that torch before 2.5 wrote."""
    names = {found[0] for source in sources if source and (found := _LAST_NAME.search(_remove_items(source)))}
    values: Values = {}
    for manager in _MANAGER.finditer(text):
        end = scan_source(text, manager.end())
        source, line_end = text[manager.end() : end], text.find("\n", end)
        type_name = parse_class_name(text[end : line_end if line_end >= 0 else None].rpartition(" type=")[2])
        if type_name and any(name in source for name in names):
            values[format_source(source), "type"] = type_name
    for leaf, code in _split_guards(text):
        if not any(name in code for name in names):
            continue
        guard = parse_guard(code, leaf)
        # Of ShapeEnv's guards only an equality with a number has the value.
        if guard.expected is not None and (guard.kind != "symbolic_shape" or guard.expected.lstrip("-").isdecimal()):
            values[guard.source, guard.kind] = guard.expected
        if tensor := TensorCheck.parse(code):
            for dim, size in enumerate(tensor.size):
                if size is not None:
                    values.update({(f"{tensor.name}.size()[{dim}]", kind): str(size) for kind in _BY_SOURCE})
    return values


def read_symbol_value(body: Mapping[str, object]) -> Values:
    """Return the value that torch made a symbol for, from the record of that symbol."""
    source, value = body.get("source"), body.get("val")
    if not isinstance(source, str) or value is None:
        return {}
    return {(format_source(source), kind): str(value) for kind in _BY_SOURCE}


def find_tensor_guards(text: str) -> list[str]:
    """Return the guards on tensors in a printed guard tree: torch's reasons lack the lines that caused them."""
    return [found[1] for found in islice(_TENSOR_LEAF.finditer("\n" + text), MAX_TENSORS)]


def match_tensor_guard(guards: Iterable[str], source: str | None) -> ParsedGuard | None:
    """Return the guard on the tensor of `source`: `x.size()[0]`, `x.dtype` or `x`."""
    for code in guards:
        tensor = TensorCheck.parse(code)
        name = tensor.name if tensor else None
        if name and source and Path.of(name).holds(Path.of(source)):
            return parse_guard(code, "TENSOR_MATCH")
    return None


def _remove_items(source: str) -> str:
    return re.sub(r"(?:\.size\(\)|\.stride\(\)|\[\d+\]|\(\))+$", "", source)


def _split_guards(text: str) -> Iterator[tuple[str | None, str]]:
    if not text.startswith("["):
        yield from ((found["leaf"], found["code"]) for found in _LEAF.finditer("\n" + text))
        return
    for guard in json.loads(text):
        yield None, str(guard["code"])


#: Name of the artifact with the reasons.
REASONS = "recompile_reasons"
#: Recompiles and entries that are remembered: a log may never report their end.
MAX_PENDING, MAX_ENTRIES = 1_000, 1_000


@dataclass
class PendingRecompile:
    """A recompile whose compile is not over. `values` are those that its new entry is made for."""

    time_ns: int
    entries: list[FailedEntry]
    values: Values = field(default_factory=dict)


class PendingRecompiles:
    """Makes the events of recompiles, each when its compile is over: later records say which values its guards met."""

    def __init__(self, attempts: Attempts, files: FileNames) -> None:
        self._attempts = attempts
        self._files = files
        self._pending: dict[CompileAttempt, PendingRecompile] = {}
        #: Compile key -> guards on the tensors of that entry.
        self._tensor_guards: dict[str | None, list[str]] = {}

    def add_reasons(self, text: str, attempt: CompileAttempt, time_ns: int) -> Iterator[Recompile | GuardFailure]:
        """Remember torch's reasons for a recompile; yield the events of one that waited too long."""
        if len(self._pending) >= MAX_PENDING:
            yield from self.finish(next(iter(self._pending)))
        entries = [parse_entry(reason) for reason in split_reasons(text)]
        for entry in entries:
            entry.compile_key = self._attempts.find_key(entry.compile_id)
        self._pending[attempt] = PendingRecompile(time_ns, entries)

    def add_guards(self, text: str, attempt: CompileAttempt) -> None:
        """Read the guards of a new entry."""
        pending = self._pending.get(attempt)
        if pending is not None:
            sources = {guard.source for entry in pending.entries for guard in entry.guards}
            pending.values.update(read_guard_values(text, sources))
        if len(self._tensor_guards) >= MAX_ENTRIES:
            self._tensor_guards.clear()
        self._tensor_guards[attempt.compile_key] = find_tensor_guards(text)

    def add_symbol(self, body: Mapping[str, object], attempt: CompileAttempt) -> None:
        """Read the value that torch made a symbol for."""
        pending = self._pending.get(attempt)
        if pending is not None:
            pending.values.update(read_symbol_value(body))

    def finish(self, attempt: CompileAttempt) -> Iterator[Recompile | GuardFailure]:
        """Yield the events of an attempt's recompile, if it is one."""
        pending = self._pending.pop(attempt, None)
        if pending is None:
            return
        for entry in pending.entries:
            for guard in entry.guards:
                self._complete(guard, entry, pending.values)
        function = self._attempts.find_function(attempt)
        closest = min(pending.entries, key=lambda entry: entry.distance)
        yield from make_recompile_events(
            pending.time_ns,
            attempt.compile_id,
            (function.function, function.file, function.line),
            pending.entries,
            closest,
            is_torch_file,
            compile_key=attempt.compile_key,
        )

    def finish_all(self) -> Iterator[Recompile | GuardFailure]:
        """Yield the events of all recompiles that wait."""
        for attempt in list(self._pending):
            yield from self.finish(attempt)

    def _complete(self, guard: FailingGuard, entry: FailedEntry, values: Values) -> None:
        """Add what the reason lacks: the value that the guard met, and the line that caused a guard on a tensor."""
        if guard.actual is None:
            value = values.get((guard.source, guard.kind))
            guard.actual = value if value != guard.expected else None
        if guard.user_file is None and entry.compile_key is not None:
            cause = match_tensor_guard(self._tensor_guards.get(entry.compile_key, ()), guard.source)
            if cause is not None:
                guard.user_file, guard.user_line, guard.user_code = cause.user_file, cause.user_line, cause.user_code
        guard.user_file = self._files.complete(guard.user_file)


def split_reasons(text: str) -> list[str]:
    """Return torch's reasons: it writes several as JSON, one as plain text."""
    if text.startswith("["):
        try:
            reasons = json.loads(text)
        except (ValueError, RecursionError):
            reasons = None
        if isinstance(reasons, list):
            return [str(reason) for reason in reasons] or [text]
    return [text]
