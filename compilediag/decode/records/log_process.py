"""What one process wrote to a trace log, as events: the same decoders as the live feeds, and what has to be remembered
between two records.

Beside the events the texts are kept: each payload by its name, and the fields of all other records as one text of
JSON lines a compile, `trace_records`, with the file names that torch wrote as numbers put in.
"""

from __future__ import annotations

import dataclasses
import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ...events import Artifact, Event
from ..cache_keys.nearest_key import KeyHistory
from ..call_stacks import is_torch_file
from ..guards import entry_values as values
from ..guards.failed_guards import FailedEntry, FailingGuard, make_recompile_events, parse_entry
from . import compilation_metrics as metrics
from . import timed_events
from .cache_records import CACHE_EVENT, add_frame, parse_cache_event
from .compilation_metrics import make_compile
from .graph_break_text import parse_graph_break, parse_logged_break
from .record_kinds import KNOWN, find_compile_id, find_kind, find_name
from .shape_records import KINDS as TRACED
from .shape_records import SCHEDULE, TENSOR_META, TracedRecords
from .timed_events import ATTEMPT_PREFIX, clean_compile_id, is_phase_kept, make_phase
from .trace_log import Record

#: An event, or an artifact with its text.
Item = Event | tuple[Artifact, bytes]
#: What a record of a kind that is not known here means to others; None if nobody knows it.
Plugged = Callable[[str, Record, str | None, int], list[Item] | None]

#: What is remembered at most: a log may never say of anything that it is over.
MAX_FRAMES = 10_000
MAX_STRINGS = 200_000
MAX_OPEN_PHASES = 10_000
MAX_WAITING = 1_000
MAX_ENTRIES = 1_000
MAX_GATHERED = 1 << 20

#: Name of the text with the records that have no text of their own.
GATHERED = "trace_records"


@dataclass
class Waiting:
    """A recompile whose compile is not over: what its guards found is told by what comes later."""

    time_ns: int
    entries: list[FailedEntry]
    values: values.Values


class LogProcess:
    """The state of one process of a log. `decode` takes its records in order; `rest` is for when there are no more.
    `plugged` is asked what records of unknown kinds mean.
    """

    def __init__(self, pid: int | None = None, plugged: Plugged | None = None):
        self.pid = pid
        self._plugged = plugged or (lambda kind, record, compile_id, time_ns: None)
        self.rank: int | None = None
        self.unknown: dict[str, int] = defaultdict(int)
        self.torch_version: str | None = None
        self._strings: dict[int, str] = {}
        self._files: dict[str, str] = {}
        #: What all compiles of a code object have in common -> compile id -> function, file, line, attempt.
        self._frames: dict[str, dict[str | None, dict[str, Any]]] = {}
        self._open: list[tuple[str, int, str | None]] = []
        self._waiting: dict[str | None, Waiting] = {}
        self._tensor_guards: dict[str | None, list[str]] = {}
        self._gathered: dict[str | None, list[bytes]] = defaultdict(list)
        self._gathered_size = 0
        self._history = KeyHistory()
        self._traced = TracedRecords()
        self._announces_lookups = self._tells_breaks = False

    def decode(self, record: Record, time_ns: int) -> Iterator[Item]:
        """The events and texts that a record gives. What it raises is the record's: it makes no sense."""
        kind = find_kind(record.metadata)
        compile_id = find_compile_id(record.metadata)
        self._note_attempt(record.metadata.get("attempt"), compile_id)
        if kind == "str":
            self._string(record.metadata["str"])
        elif kind == "chromium_event" and record.payload is not None:
            yield from self._timed(json.loads(record.payload), record)
        else:
            handle = _HANDLERS.get(kind or "")
            if handle is not None:
                yield from handle(self, record, compile_id, time_ns)
            if kind not in KNOWN:
                made = self._plugged(str(kind), record, compile_id, time_ns)
                if made is None:
                    self.unknown[str(kind)[:100]] += 1
                yield from made or ()
            if kind not in metrics.KINDS:
                yield from self._keep(record, kind, compile_id, time_ns)

    def rest(self, time_ns: int) -> Iterator[Item]:
        """What waited for something that never came, until the log's end at `time_ns`."""
        for compile_id in list(self._waiting):
            yield from self._recompile(compile_id)
        yield from self._flush_gathered(0, time_ns)

    # What is remembered

    def _string(self, told: Any) -> None:
        text, number = told
        if isinstance(text, str) and isinstance(number, int) and len(self._strings) < MAX_STRINGS:
            self._strings[number] = text
            self._files.clear()

    def _note_attempt(self, attempt: Any, compile_id: str | None) -> None:
        frame = self._frames.get(_frame_id(compile_id), {}).get(compile_id)
        if frame is not None and isinstance(attempt, int) and attempt > frame["attempt"]:
            frame["attempt"] = attempt

    def _started(self, record: Record, compile_id: str | None, time_ns: int) -> Iterator[Item]:
        stack = record.metadata["dynamo_start"].get("stack") or [{}]
        key, fresh = self._traced.stack(stack, self._strings, time_ns)
        if len(self._frames) >= MAX_FRAMES:
            self._frames.clear()
        frame = {
            "function": stack[-1].get("name"),
            "file": self._strings.get(stack[-1].get("filename")),
            "line": stack[-1].get("line"),
            "attempt": 0,
            "stack": key,
        }
        if compile_id is None or compile_id.endswith("/0"):
            # After a reset ids are used again.
            self._frames[_frame_id(compile_id)] = {}
        self._frames.setdefault(_frame_id(compile_id), {})[compile_id] = frame
        yield from fresh

    def _frame(self, compile_id: str | None) -> dict[str, Any]:
        """What is known of a compile's function. One that is given up at once, as at the recompile limit, has no start:
        it is of the same frame as those before it.
        """
        compiles = self._frames.get(_frame_id(compile_id)) or {compile_id: {}}
        return compiles.get(compile_id) or {**next(reversed(compiles.values())), "attempt": 0, "stack": None}

    # Compiles and recompiles

    def _metrics(self, record: Record, compile_id: str | None, time_ns: int) -> Iterator[Item]:
        kind = find_kind(record.metadata) or ""
        told = record.metadata[kind]
        fields = metrics.normalize_metrics(kind, told, compile_id, time_ns)
        compile_id = fields["compile_id"]
        yield from self._recompile(compile_id)
        event = make_compile(fields, self._frame(compile_id))
        if event is not None:
            yield event
            self.torch_version = fields.get("pytorch_version") or self.torch_version
            if not self._tells_breaks and "compile_id" not in told:
                yield from self._older_breaks(event)
        for name, text in metrics.split_texts(kind, told):
            yield Artifact(time_ns=time_ns, compile_id=compile_id, name=name), text.encode("utf-8", "replace")
        yield from self._flush(compile_id, time_ns)

    def _reasons(self, record: Record, compile_id: str | None, time_ns: int) -> Iterator[Item]:
        yield from self._recompile(compile_id)
        if len(self._waiting) >= MAX_WAITING:
            yield from self._recompile(next(iter(self._waiting)))
        self._waiting[compile_id] = Waiting(time_ns, [parse_entry(reason) for reason in _reasons_of(record.text)], {})

    def _recompile(self, compile_id: str | None) -> Iterator[Item]:
        waiting = self._waiting.pop(compile_id, None)
        if waiting is None:
            return
        entries = waiting.entries
        for entry in entries:
            for guard in entry.guards:
                self._complete(guard, self._tensor_guards.get(entry.compile_id, ()), waiting.values)
        frame = self._frame(compile_id)
        where = (frame.get("function"), frame.get("file"), frame.get("line"))
        closest = min(entries, key=lambda entry: entry.distance)
        yield from make_recompile_events(waiting.time_ns, compile_id, where, entries, closest, is_torch_file)

    def _complete(self, guard: FailingGuard, tensor_guards: Iterable[str], now: values.Values) -> None:
        """What the reason doesn't tell: the value that the new entry was made for, the line that asked for a tensor."""
        if guard.actual is None:
            value = now.get((guard.source, guard.kind))
            guard.actual = value if value != guard.expected else None
        if guard.user_file is None and (asked := values.match_tensor_guard(tensor_guards, guard.source)) is not None:
            guard.user_file, guard.user_line, guard.user_code = asked.user_file, asked.user_line, asked.user_code
        guard.user_file = self._whole_path(guard.user_file)

    def _whole_path(self, path: str | None) -> str | None:
        """Guards tell the end of a path; the whole of it is among the names of files.

        torch cuts off the folders that a path shares with its own, and a character more for the slash: where they
        share none that is the first letter.
        """
        if path is not None and path not in self._files:
            whole = (name for name in self._strings.values() if name.endswith(f"/{path}") or name[2:] == path)
            self._files[path] = path if path.startswith("/") else next(whole, path)
        return path and self._files[path]

    def _guards(self, record: Record, compile_id: str | None, time_ns: int) -> Iterator[Item]:
        waiting = self._waiting.get(compile_id)
        if waiting is not None:
            sources = {guard.source for entry in waiting.entries for guard in entry.guards}
            waiting.values.update(values.read_guard_values(record.text, sources))
        if len(self._tensor_guards) >= MAX_ENTRIES:
            self._tensor_guards.clear()
        self._tensor_guards[compile_id] = values.find_tensor_guards(record.text)
        yield from ()

    def _symbol(self, record: Record, compile_id: str | None, time_ns: int) -> Iterator[Item]:
        waiting = self._waiting.get(compile_id)
        if waiting is not None:
            waiting.values.update(values.read_symbol_value(record.metadata["create_symbol"]))
        yield from self._shape(record, compile_id, time_ns)

    def _shape(self, record: Record, compile_id: str | None, time_ns: int) -> Iterator[Item]:
        kind = find_kind(record.metadata) or ""
        yield from self._traced.events(kind, record.metadata[kind], self._strings, compile_id, time_ns)

    # Timed events, look-ups, breaks

    def _timed(self, event: dict[str, Any], record: Record) -> Iterator[Item]:
        name, time_ns, stage = event["name"], round(event["ts"] * 1000), event["ph"]
        told = event.get("args") or {}
        if stage == "B":
            if len(self._open) < MAX_OPEN_PHASES:
                self._open.append((name, time_ns, told.get("compile_id")))
            if name.startswith(ATTEMPT_PREFIX):
                self._note_attempt(int(name[len(ATTEMPT_PREFIX) :]), find_compile_id(record.metadata))
        elif stage == "E":
            yield from self._ended(name, time_ns, told.get("compile_id"))
        elif CACHE_EVENT.match(name):
            self._announces_lookups = True
            yield from self._lookup(name, told, time_ns)
        elif name == timed_events.AUTOMATIC_DYNAMIC:
            yield timed_events.make_dynamic_decision(told, time_ns)

    def _ended(self, name: str, end_ns: int, compile_id: str | None) -> Iterator[Item]:
        """Threads that compile at once write into one another: a phase ends the last one of its name and compile."""
        opened = self._open
        at = next((i for i in range(len(opened) - 1, -1, -1) if opened[i][::2] == (name, compile_id)), None)
        if at is None:
            return
        start_ns = opened.pop(at)[1]
        # What is timed outside of any compile is timed in a thread of its own.
        around = [outer for outer, _, of in opened[:at] if (of == "None") == (compile_id == "None")]
        if is_phase_kept(name, end_ns - start_ns, every=True):
            yield make_phase(name, around[-1] if around else None, len(around), start_ns, end_ns, compile_id)

    def _lookup(self, name: str, told: Mapping[str, Any], time_ns: int) -> Iterator[Item]:
        lookup = parse_cache_event(name, told, time_ns)
        if lookup is None:
            return
        compile_id = clean_compile_id(lookup.compile_id)
        lookup = dataclasses.replace(add_frame(lookup, self._frame(compile_id)), compile_id=compile_id)
        yield self._history.compare(lookup, told.get("components") or ())

    def _artifact(self, record: Record, compile_id: str | None, time_ns: int) -> Iterator[Item]:
        name = find_name(record.metadata) or ""
        if name == "recompile_reasons":
            yield from self._reasons(record, compile_id, time_ns)
        elif name == "dynamo_graph_break_reason":
            self._tells_breaks = True
            found = parse_logged_break(record.text, time_ns, compile_id)
            if found is not None:
                yield found
        elif name in (SCHEDULE, TENSOR_META):
            yield from self._traced.collectives(name, record.text, compile_id, time_ns)
        elif name == "torch_version":
            self.torch_version = json.loads(record.text).get("pytorch_version")
        elif CACHE_EVENT.match(name) and not self._announces_lookups:
            # Until torch 2.6 a look-up was not announced as an event.
            yield from self._lookup(name, {"compile_id": compile_id, **json.loads(record.text)}, time_ns)

    def _link(self, record: Record, compile_id: str | None, time_ns: int) -> Iterator[Item]:
        link = record.metadata["link"]
        yield Artifact(time_ns=time_ns, compile_id=compile_id, name=f"link: {link['name']}"), str(link["url"]).encode()

    def _older_breaks(self, event: Any) -> Iterator[Item]:
        """Before torch 2.6 a break leaves no record but the reason why the analysis began again."""
        for reason in event.restart_reasons or ():
            yield parse_graph_break(str(reason), event.time_ns, event.compile_id)

    # Texts

    def _keep(self, record: Record, kind: str | None, compile_id: str | None, time_ns: int) -> Iterator[Item]:
        told = record.metadata.get(kind or "")
        if record.payload is not None:
            name = find_name(record.metadata) or "unknown"
            stack, fresh = self._traced.stack(record.metadata.get("stack"), self._strings, time_ns)
            yield from fresh
            kept = Artifact(time_ns=time_ns, compile_id=compile_id, name=name, digest=record.digest, stack=stack)
            yield kept, record.payload
        if record.payload is None or (told and kind != "artifact"):
            self._gather(record.metadata, compile_id)
            yield from self._flush_gathered(MAX_GATHERED, time_ns)

    def _gather(self, metadata: Mapping[str, Any], compile_id: str | None) -> None:
        line = json.dumps(self._with_files(metadata)).encode()
        self._gathered[compile_id].append(line)
        self._gathered_size += len(line)

    def _with_files(self, told: Any) -> Any:
        """The same with the names of files instead of their numbers."""
        if isinstance(told, dict):
            changed = {key: self._with_files(value) for key, value in told.items()}
            if isinstance(told.get("filename"), int):
                changed["filename"] = self._strings.get(told["filename"])
            return changed
        return [self._with_files(value) for value in told] if isinstance(told, list) else told

    def _flush(self, compile_id: str | None, time_ns: int) -> Iterator[Item]:
        lines = self._gathered.pop(compile_id, None)
        if lines:
            self._gathered_size -= sum(map(len, lines))
            artifact = Artifact(time_ns=time_ns, compile_id=compile_id, name=GATHERED)
            yield artifact, b"\n".join(lines)

    def _flush_gathered(self, beyond: int, time_ns: int) -> Iterator[Item]:
        if self._gathered_size > beyond:
            for compile_id in list(self._gathered):
                yield from self._flush(compile_id, time_ns)


def _frame_id(compile_id: str | None) -> str:
    """What all compiles of a code object have in common: `0/` of `0/1`."""
    head, slash, _ = (compile_id or "").rpartition("/")
    return head + slash


def _reasons_of(text: str) -> list[str]:
    """torch's reasons: JSON of several, the bare text of one."""
    if text.startswith("["):
        try:
            told = json.loads(text)
        except (ValueError, RecursionError):
            told = None
        if isinstance(told, list):
            return [str(reason) for reason in told] or [text]
    return [text]


_HANDLERS: dict[str, Callable[[LogProcess, Record, str | None, int], Iterator[Item]]] = {
    "dynamo_start": LogProcess._started,
    "artifact": LogProcess._artifact,
    "dynamo_cpp_guards_str": LogProcess._guards,
    "dynamo_guards": LogProcess._guards,
    **dict.fromkeys(TRACED, LogProcess._shape),
    "create_symbol": LogProcess._symbol,
    "link": LogProcess._link,
    **dict.fromkeys(metrics.KINDS, LogProcess._metrics),
}
