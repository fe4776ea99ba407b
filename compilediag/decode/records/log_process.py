"""The records that one process wrote to a trace log, as events.

The functions that make the events are those of the live sources; here is what has to be remembered between two
records. Texts are stored too: each payload under its name, and the fields of all other records as one text of JSON
lines per compile, `trace_records`, with the names of files in place of torch's numbers.

torch's reasons of a recompile are completed by the guards and symbols that are logged after them. A reason has the
value that the earlier entry needs, and often not the one that its guard met. The new entry has that one: where `n == 1`
failed and the new entry has `n == 2`, n was 2.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice

from ...events import Artifact, Event, GuardFailure, Recompile
from ...formatting import cache_short
from ...system import plugins
from ..call_stacks import CallStacks, is_torch_file, parse_logged_frames
from ..guards.failed_guards import FailedEntry, FailingGuard, make_recompile_events, parse_entry
from ..guards.guard_forms import parse_class_name
from ..guards.guard_text import TensorCheck, parse_guard
from ..guards.path import Path, format_source, scan_source
from . import compilation_metrics as metrics
from .cache_records import CACHE_EVENT, PROFILES, LoggedLookups
from .compilation_metrics import (
    ATTEMPT_PREFIX,
    AUTOMATIC_DYNAMIC,
    WHOLE_COMPILE,
    OpenPhases,
    clean_compile_id,
    make_dynamic_decision,
)
from .record_kinds import (
    ANNOUNCED,
    KNOWN,
    MEASURED,
    OF_VLLM,
    REASONED,
    STARTED,
    Attempts,
    CompileAttempt,
    bound_payload,
    find_name,
)
from .shape_records import KINDS as SHAPE_KINDS
from .shape_records import SCHEDULE, TENSOR_META, ShapeRecords
from .torch_messages import parse_graph_break, parse_logged_break
from .trace_log import FileNames, Record, compute_md5
from .vllm_records import VllmRecords

#: (source, kind of guard) -> value.
Values = dict[tuple[str | None, str], str]

#: Guards on tensors that are remembered for one entry.
MAX_TENSORS = 1_000

#: A leaf of the guard tree as torch prints it, after a line end: `^` is ten times slower.
_LEAF = re.compile(r"\n[| +-]*\+- (?P<leaf>[A-Z_0-9]+): (?P<code>.*)")
_TENSOR_LEAF = re.compile(r"\n[| +-]*\+- TENSOR_MATCH: (.*)")
_MANAGER = re.compile(r"Manager: source=")
_LAST_NAME = re.compile(r"\w+(?=\W*$)")
_ITEMS = re.compile(r"(?:\.size\(\)|\.stride\(\)|\[\d+\]|\(\))+$")
#: Kinds of guards that name a size or a number by its source.
_BY_SOURCE = ("symbolic_shape", "tensor_size", "value")


def read_guard_values(text: str, sources: Iterable[str | None]) -> Values:
    """Return the values of `sources` in a printed guard tree, or in the list of guards that torch before 2.5 wrote."""
    names = {found[0] for source in sources if source and (found := _LAST_NAME.search(_ITEMS.sub("", source)))}
    values: Values = {}
    for manager in _MANAGER.finditer(text):
        end = scan_source(text, manager.end())
        source, line_end = text[manager.end() : end], text.find("\n", end)
        type_name = parse_class_name(text[end : line_end if line_end >= 0 else None].rpartition(" type=")[2])
        if type_name and any(name in source for name in names):
            values[format_source(source), "type"] = type_name
    guards: Iterable[tuple[str | None, str]]
    if text.startswith("["):
        guards = [(None, str(guard["code"])) for guard in json.loads(text)]
    else:
        guards = ((found["leaf"], found["code"]) for found in _LEAF.finditer("\n" + text))
    for leaf, code in guards:
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
        reasons: object = None
        if text.startswith("["):  # torch writes several reasons as JSON, one as plain text.
            with contextlib.suppress(ValueError, RecursionError):
                reasons = json.loads(text)
        listed = list(map(str, reasons)) if isinstance(reasons, list) and reasons else [text]
        entries = list(map(parse_entry, listed))
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
        # torch's reasons lack the lines that caused a guard on a tensor.
        leaves = islice(_TENSOR_LEAF.finditer("\n" + text), MAX_TENSORS)
        self._tensor_guards[attempt.compile_key] = [leaf[1] for leaf in leaves]

    def add_symbol(self, body: Mapping[str, object], attempt: CompileAttempt) -> None:
        """Read the value that torch made a symbol for."""
        pending, source, value = self._pending.get(attempt), body.get("source"), body.get("val")
        if pending is not None and isinstance(source, str) and value is not None:
            pending.values.update({(format_source(source), kind): str(value) for kind in _BY_SOURCE})

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
            (function["function"], function["file"], function["line"]),
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
        if guard.user_file is None and entry.compile_key is not None and guard.source:
            value_of = Path.of(guard.source)  # `x.size()[0]`, `x.dtype` or `x`
            for code in self._tensor_guards.get(entry.compile_key, ()):
                tensor = TensorCheck.parse(code)
                if tensor and tensor.name and Path.of(tensor.name).holds(value_of):
                    cause = parse_guard(code, "TENSOR_MATCH")
                    guard.user_file, guard.user_line = cause.user_file, cause.user_line
                    guard.user_code = cause.user_code
                    break
        guard.user_file = self._files.complete(guard.user_file)


@dataclass(frozen=True, slots=True)
class PackedText:
    """A text of `size` bytes, compressed; the body is empty if the same text came before."""

    size: int
    body: bytes


#: An event, or an artifact with its text.
Item = Event | tuple[Artifact, bytes | PackedText]

#: Name of the text with the records that have no text of their own.
GATHERED = "trace_records"
#: Bytes of such records that are gathered before they are written.
MAX_GATHERED = 1 << 20
#: Texts that are remembered, and their longest: every compile logs the same configurations.
REMEMBERED, MAX_REMEMBERED = 64, 16 << 10
#: The number of a file in JSON.
_FILE = re.compile(r'"filename": (?P<number>\d{1,9})(?=[,}])')


class KeptTexts:
    """Makes the artifacts of one process's records."""

    def __init__(self, stacks: CallStacks, files: FileNames) -> None:
        self._stacks = stacks
        self._files = files
        self._gathered: dict[CompileAttempt, list[bytes]] = defaultdict(list)
        self._size = 0

    def make_text(self, name: str, attempt: CompileAttempt, time_ns: int, text: str) -> tuple[Artifact, bytes]:
        """Make an artifact of an attempt from its text."""
        data, digest = _encode(text)
        return attempt.make_artifact(name, time_ns, size=len(data), digest=digest), data

    def keep(self, record: Record, kind: str, attempt: CompileAttempt, time_ns: int) -> Iterator[Item]:
        """Yield the artifact of a record's payload; gather the fields of a record that has none."""
        payload, body = record.payload, record.metadata.get(kind)
        if payload is not None:
            logged = record.metadata.get("stack")
            stack = None
            if logged is not None:
                stack, fresh = self._stacks.add(parse_logged_frames(logged, self._files), time_ns)
                yield from fresh
            name = find_name(record.metadata) or "unknown"
            artifact = attempt.make_artifact(name, time_ns, size=record.size, digest=record.digest, stack=stack)
            if record.packed is None:
                yield artifact, bound_payload(kind, payload)
            else:
                yield artifact, PackedText(record.size, record.packed)
        if payload is None or (body and kind != "artifact"):
            line = _FILE.sub(self._name_file, record.fields.rstrip()).encode("utf-8", "replace")
            self._gathered[attempt].append(line)
            self._size += len(line)
            yield from self.flush(MAX_GATHERED, time_ns)

    def flush_compile(self, attempt: CompileAttempt, time_ns: int) -> Iterator[Item]:
        """Yield the gathered records of an attempt."""
        lines = self._gathered.pop(attempt, None)
        if lines:
            self._size -= sum(map(len, lines))
            text = b"\n".join(lines)
            yield attempt.make_artifact(GATHERED, time_ns, size=len(text), digest=compute_md5(text)), text

    def flush(self, beyond: int, time_ns: int) -> Iterator[Item]:
        """Yield all gathered records if they have more than `beyond` bytes."""
        if self._size > beyond:
            for attempt in list(self._gathered):
                yield from self.flush_compile(attempt, time_ns)

    def _name_file(self, found: re.Match[str]) -> str:
        """Return the name of a file in place of torch's number; the end of a text stays as it is."""
        if found.string[found.start() - 1] == "\\":
            return found[0]
        return _format_name(self._files.get(int(found["number"])))


@functools.lru_cache(1_000)
def _format_name(file: str | None) -> str:
    return f'"filename": {json.dumps(file)}'


@cache_short(REMEMBERED, MAX_REMEMBERED)
def _encode(text: str) -> tuple[bytes, str]:
    """Return the UTF-8 of a text and its md5."""
    data = text.encode("utf-8", "replace")
    return data, compute_md5(data)


#: Most items that are accepted for one record of a plug-in.
MAX_ITEMS = 10_000


def _make_item(item: object, attempt: CompileAttempt, time_ns: int) -> Item:
    """Return an event of the record's compile with its key, or the artifact of a pair of strings, name and text."""
    if isinstance(item, Event):
        is_of_compile = item.compile_key is None and item.compile_id == attempt.compile_id
        return dataclasses.replace(item, compile_key=attempt.compile_key) if is_of_compile else item
    name, text = item if isinstance(item, (tuple, list)) and len(item) == 2 else (None, None)
    if not (isinstance(name, str) and isinstance(text, str)):
        raise TypeError("a decoder returns events of compilediag.events, or pairs of name and text")
    return attempt.make_artifact(name, time_ns), text.encode("utf-8", "replace")


_Decoder = Callable[["LogProcess", Record, CompileAttempt, int], Iterator[Item]]
_DECODERS: dict[str, _Decoder] = {}


def register(*kinds: str) -> Callable[[_Decoder], _Decoder]:
    """The method decodes the records of these kinds."""

    def add(decoder: _Decoder) -> _Decoder:
        _DECODERS.update(dict.fromkeys(kinds, decoder))
        return decoder

    return add


class LogProcess:
    """Decodes the records of one process in order; `finish` is for the end of the log.

    `make_key` returns a new compile key. Plug-ins decode records of unknown kinds.
    """

    def __init__(self, pid: int | None, make_key: Callable[[], str]):
        self.pid = pid
        self.rank: int | None = None
        self.unknown: dict[str, int] = defaultdict(int)
        self.torch_version: str | None = None
        self.static_sources: str | None = None
        self._files = FileNames()
        self._attempts = Attempts(make_key)
        self._phases = OpenPhases()
        self._recompiles = PendingRecompiles(self._attempts, self._files)
        self._shapes = ShapeRecords()
        self._texts = KeptTexts(self._shapes.stacks, self._files)
        self._lookups = LoggedLookups(self._attempts)
        self._vllm = VllmRecords()
        self._logs_breaks = False

    def decode(self, record: Record, time_ns: int) -> Iterator[Item]:
        """Yield the events and texts of a record that is no timed event.

        Like `decode_timed`, it raises whatever a record that makes no sense causes.
        """
        kind = record.kind
        if kind == "str":
            self._files.add(*record.metadata["str"])
            return
        if kind == "dynamo_start":
            attempt = self._attempts.advance(record.compile_id, STARTED)
        elif kind == "artifact" and find_name(record.metadata) == REASONS:
            attempt = self._attempts.advance(record.compile_id, REASONED)
        else:
            attempt = self._attempts.get(record.compile_id)
        attempt.note_restarts(record.metadata.get("attempt"))
        yield from self._lookups.see_kind(kind, attempt)
        decoder = _DECODERS.get(kind)
        if decoder is not None:
            yield from decoder(self, record, attempt, time_ns)
        if kind not in KNOWN:
            yield from self._decode_extra(kind, record, attempt, time_ns)
        if kind not in metrics.KINDS:
            yield from self._texts.keep(record, kind, attempt, time_ns)

    def finish(self, time_ns: int) -> Iterator[Item]:
        """Yield what waited for later records until the log ended, at `time_ns`."""
        yield from self._recompiles.finish_all()
        yield from self._lookups.finish()
        yield from self._vllm.finish()
        yield from self._texts.flush(0, time_ns)

    def _decode_extra(self, kind: str, record: Record, attempt: CompileAttempt, time_ns: int) -> Iterator[Item]:
        """Yield what the plug-in for records of this kind makes of one; count it if there is none, or if it fails."""

        def accept(items: Iterable[object] | None) -> list[Item]:
            return [_make_item(item, attempt, time_ns) for item in list(items or ())[:MAX_ITEMS]]

        decoder = plugins.find_decoder(kind)
        items: list[Item] | None = None
        if decoder is not None:
            text = None if record.payload is None else record.text
            items = decoder.call(accept, dict(record.metadata), text, attempt.compile_id, time_ns)
        if items is None:
            self.unknown[kind[:100] or "None"] += 1
        yield from items or ()

    # Compiles and recompiles

    @register("dynamo_start")
    def _decode_start(self, record: Record, attempt: CompileAttempt, time_ns: int) -> Iterator[Item]:
        stack = record.metadata["dynamo_start"].get("stack") or [{}]
        key, fresh = self._shapes.stacks.add(parse_logged_frames(stack, self._files), time_ns)
        frame = stack[-1]
        function, file = frame.get("name"), self._files.get(frame.get("filename"))
        self._attempts.start(attempt, {"function": function, "file": file, "line": frame.get("line")}, key)
        yield from fresh

    @register(*metrics.KINDS)
    def _decode_metrics(self, record: Record, attempt: CompileAttempt, time_ns: int) -> Iterator[Item]:
        kind = record.kind
        logged = record.metadata[kind]
        fields = metrics.normalize_metrics(kind, logged, attempt.compile_id, time_ns)
        attempt = self._attempts.get(fields["compile_id"])
        if fields.get("is_forward") is not False and not fields["is_runtime"]:
            attempt = self._attempts.advance(fields["compile_id"], MEASURED)
        yield from self._recompiles.finish(attempt)
        compile = metrics.make_compile(fields, self._attempts.describe(attempt), attempt.compile_key)
        if compile is not None:
            yield from self._vllm.end(attempt.compile_key, time_ns)
            yield compile
            self.torch_version = fields.get("pytorch_version") or self.torch_version
            self.static_sources = metrics.read_static_sources(fields) or self.static_sources
            if not self._logs_breaks and "compile_id" not in logged:
                # torch before 2.6 logs only why the analysis restarted.
                for reason in compile.restart_reasons or ():
                    yield parse_graph_break(
                        str(reason), compile.time_ns, compile.compile_id, compile_key=compile.compile_key
                    )
        for name, text in metrics.split_texts(kind, logged):
            yield self._texts.make_text(name, attempt, time_ns, text)
        yield from self._texts.flush_compile(attempt, time_ns)

    @register("dynamo_cpp_guards_str", "dynamo_guards")
    def _decode_guards(self, record: Record, attempt: CompileAttempt, time_ns: int) -> Iterator[Item]:
        self._recompiles.add_guards(record.text, attempt)
        yield from ()

    @register("create_symbol")
    def _decode_symbol(self, record: Record, attempt: CompileAttempt, time_ns: int) -> Iterator[Item]:
        self._recompiles.add_symbol(record.metadata["create_symbol"], attempt)
        yield from self._decode_shape(record, attempt, time_ns)

    @register(*SHAPE_KINDS)
    def _decode_shape(self, record: Record, attempt: CompileAttempt, time_ns: int) -> Iterator[Item]:
        kind, compile_id, key = record.kind, attempt.compile_id, attempt.compile_key
        yield from self._shapes.decode(
            kind, record.metadata[kind], self._files, compile_id, time_ns, None, key, attempt.is_announced
        )

    # Timed events, look-ups, graph breaks

    def decode_timed(self, record: Record) -> list[Item]:
        """Return the events of a timed event, which has its own time."""
        event, compile_id = record.parse_event(), record.compile_id
        name, time_ns, stage = event["name"], round(event["ts"] * 1000), event["ph"]
        arguments = event.get("args") or {}
        timed_id = arguments.get("compile_id")
        items: list[Item] = []
        if stage == "B":
            attempt = self._attempts.get(clean_compile_id(timed_id))
            if name == WHOLE_COMPILE:
                attempt = self._attempts.advance(attempt.compile_id, ANNOUNCED)
            self._phases.begin(name, time_ns, timed_id, attempt.compile_key)
            if name.startswith(ATTEMPT_PREFIX):
                self._attempts.get(compile_id).note_restarts(int(name[len(ATTEMPT_PREFIX) :]))
        elif stage == "E":
            phase = self._phases.end(name, time_ns, timed_id)
            if phase is not None:
                items.append(phase)
            if name.startswith(PROFILES):
                items.extend(self._lookups.end_timed(name, arguments, time_ns))
        elif CACHE_EVENT.match(name):
            items.extend(self._lookups.decode_event(name, arguments, time_ns))
        elif name == AUTOMATIC_DYNAMIC:
            items.append(make_dynamic_decision(arguments, time_ns, self._attempts.find_key(timed_id)))
        if compile_id is not None and (number := record.metadata.get("attempt")):
            self._attempts.get(compile_id).note_restarts(number)
        return items

    @register("artifact")
    def _decode_artifact(self, record: Record, attempt: CompileAttempt, time_ns: int) -> Iterator[Item]:
        name = find_name(record.metadata) or ""
        if name == REASONS:
            yield from self._recompiles.add_reasons(record.text, attempt, time_ns)
        elif name == "dynamo_graph_break_reason":
            self._logs_breaks = True
            function = self._attempts.find_function(attempt)
            place = function["function"], function["file"]
            found = parse_logged_break(record.text, time_ns, attempt.compile_id, attempt.compile_key, *place)
            if found is not None:
                yield found
        elif name in (SCHEDULE, TENSOR_META):
            yield from self._shapes.decode_collectives(
                name, record.text, attempt.compile_id, time_ns, compile_key=attempt.compile_key
            )
        elif name.startswith(OF_VLLM):
            yield from self._decode_vllm(record, attempt, time_ns)
        elif name == "torch_version":
            self.torch_version = json.loads(record.text).get("pytorch_version")
        else:
            yield from self._lookups.decode_artifact(name, record, attempt, time_ns)

    @register("graph_dump")
    def _decode_vllm(self, record: Record, attempt: CompileAttempt, time_ns: int) -> Iterator[Item]:
        name = find_name(record.metadata) or ""
        if name.startswith(OF_VLLM):
            yield from self._vllm.decode(name, record.text, attempt.compile_id, attempt.compile_key, time_ns)

    @register("link")
    def _decode_link(self, record: Record, attempt: CompileAttempt, time_ns: int) -> Iterator[Item]:
        link = record.metadata["link"]
        yield self._texts.make_text(f"link: {link['name']}", attempt, time_ns, str(link["url"]))
