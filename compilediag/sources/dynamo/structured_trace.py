"""The structured trace, in `full` only: graphs, generated code and guard trees as torch writes them.

While any handler listens torch builds every record, wanted or not, and most are not: of the 5.5 % that this cost a
Dynamo-only recompile, 3.3 % were timed events and tensor descriptions that compilediag gets in cheaper ways. And an
error while a record is built, such as a class whose `repr` raises, would be raised in the user's program. So where
compilediag is the only listener, torch sees that nobody listens, and the few texts that are kept are built here.
"""

from __future__ import annotations

import contextlib
import json
import logging
from collections.abc import Callable
from typing import Any

from ...decode.call_stacks import Frame
from ...decode.records.record_kinds import (
    BUILT,
    NAMED,
    OF_VLLM,
    bound_artifact,
    find_kind,
    find_name,
    is_kept,
    make_artifact,
)
from ...decode.records.shape_records import KINDS as SHAPE_KINDS
from ...decode.records.shape_records import SCHEDULE, TENSOR_META, ShapeRecords
from ...decode.records.vllm_records import VllmRecords
from ...events import Artifact
from ...system import clock
from ...system.interrupts import pass_on
from ..compile_context import EventSink, Made
from ..guards.torch_api import source_name
from ..hooks.source import Callback, Source
from . import torch_api
from .stack_frames import Places, frames_outside, read_frames

#: (compile id, compile key)
Compiling = tuple[str | None, str | None]


class StructuredTrace(Source):
    name = "trace"
    needs = (torch_api.TRACE_LOGGER, torch_api.FILE_NAMES, torch_api.TRACING_CONTEXT)
    details = ("full",)

    def __init__(self, recorder: EventSink, detail: str):
        super().__init__(recorder, detail)
        self._handler = logging.Handler()
        self._handler.emit = Callback(self, self._receive)  # type: ignore[method-assign, assignment]
        self._logger: logging.Logger | None = None
        self._before: list[logging.Handler] = []
        self._listeners: _Listeners | None = None

    def open(self) -> None:
        self._file_names: dict[str, int] = torch_api.FILE_NAMES.find()
        self._records = ShapeRecords(self.context.stacks)
        self._vllm = VllmRecords()
        self._logger = torch_api.trace_logger()
        self._before = _find_plain_list(self._logger.handlers)
        self._listeners = _Listeners(self._before, self._handler, self)
        self._logger.handlers = self._listeners

    def close(self) -> None:
        if self._logger is None or self._listeners is None:
            return
        self._listeners.leave()
        with contextlib.suppress(ValueError):
            self._logger.handlers.remove(self._handler)  # Another tool may have copied our list.
        if self._logger.handlers is self._listeners:
            # Handlers that came or went meanwhile did so in our list; the list from before is the one that stays.
            self._before[:] = self._listeners
            self._logger.handlers = _find_plain_list(self._before)
        self.emit(self._vllm.finish)

    def _receive(self, logged: logging.LogRecord) -> None:
        """A record that torch has built because somebody else listens too."""
        metadata, payload = getattr(logged, "metadata", None), getattr(logged, "payload", None)
        if not isinstance(metadata, dict):
            return
        name, time_ns, compiling = find_name(metadata), clock.now_ns(), self.context.keys.current()
        compile_id, key = compiling
        if payload is not None and name is not None and is_kept(name):
            self.emit(lambda: (make_artifact(metadata, name, payload, time_ns, key),))
            self._make_rows(name, payload, compiling, time_ns)
        elif (kind := find_kind(metadata)) in SHAPE_KINDS:
            names = dict(enumerate(self._file_names))
            record = {**metadata[kind], **_read_prefix(kind)}
            self.emit(self._records.decode, kind, record, names, compile_id, time_ns, None, key)

    def build(self, name: str, metadata: Callable[[], Any], payload: Callable[[], Any]) -> None:
        """Keep a record that torch will not build; `metadata` and `payload` are the functions that give it.

        An error in them is torch's or the user's; it would have been raised in the user's program.
        """
        compiling, time_ns = self.context.keys.current(), clock.now_ns()
        if name in SHAPE_KINDS:
            self._trace_shape(name, metadata, compiling, time_ns)
            return
        kept: str | None = name
        if name in NAMED:
            found = self._ask(metadata)
            kept = None if found is None else find_name({name: found})
        text = self._ask(payload) if is_kept(kept) else None
        if text is not None:
            text = text if isinstance(text, str) else json.dumps(text, default=str, indent=0)
            compile_id, key = compiling
            artifact = Artifact(time_ns=time_ns, compile_id=compile_id, compile_key=key, name=kept)
            self.emit(lambda: ((artifact, bound_artifact(kept, text)),))
            self._make_rows(kept, text, compiling, time_ns)

    def _ask(self, give: Callable[[], Any]) -> Any:
        """What torch's function gives; None if it raises."""
        try:
            return give()
        except Exception as error:
            pass_on(error)
            self.dropped += 1
            return None

    def _trace_shape(self, kind: str, metadata: Callable[[], Any], compiling: Compiling, time_ns: int) -> None:
        found = torch_api.read_variables(kind, metadata)
        compile_id, key = compiling
        if found is None:
            built = self._ask(lambda: torch_api.build_record(metadata, self._file_names))
            if built is not None:
                self.emit(self._records.decode, kind, *built, compile_id, time_ns, None, key)
        else:
            around = frames_outside(torch_api.WRITER, None)
            found.update(_read_prefix(kind))
            self.emit(_make_read_shape_rows, self._records, kind, found, around, compiling, time_ns)

    def _make_rows(self, name: str | None, text: str, compiling: Compiling, time_ns: int) -> None:
        if name in (SCHEDULE, TENSOR_META):
            compile_id, key = compiling
            self.emit(self._records.decode_collectives, name, text, compile_id, time_ns, key)
        elif name is not None and name.startswith(OF_VLLM):
            self.emit(self._vllm.decode, name, text, *compiling, time_ns)


class _Listeners(list[logging.Handler]):
    """The logger's handlers, of which torch asks `if trace_log.handlers:` before it builds a record.

    As long as only ours is among them the answer is no. To everybody else it is an ordinary list, and so it is to
    everybody after `leave`: a tool that kept it may put it back.
    """

    def __init__(self, handlers: list[logging.Handler], own: logging.Handler, source: StructuredTrace):
        super().__init__([*handlers, own])
        self.before = handlers
        #: True when it has no effect any more. Another copy of this package asks for it too.
        self.has_left_compilediag = False
        self._own: logging.Handler | None = own
        self._source = source

    def leave(self) -> None:
        self.has_left_compilediag = True
        own, self._own = self._own, None
        if own is not None and own in self:
            self.remove(own)

    def __bool__(self) -> bool:
        try:
            if len(self) != 1 or self[0] is not self._own:
                return len(self) > 0
            # torch has to build a record that does not say what it is.
            asked = torch_api.record_asked_for()
            if asked is not None and asked[0] in BUILT:
                self._source.run_shielded(self._source.build, *asked)
            return asked is None
        except RecursionError as error:
            self._source.escaped.append(error)
        except BaseException as error:
            self._source.handle_escaped(error)
        return len(self) > 1


def _find_plain_list(handlers: Any) -> Any:
    """The logger's own list of handlers, also if there is a list of an earlier watch, of any copy of this package."""
    while getattr(handlers, "has_left_compilediag", False):
        handlers.before[:] = handlers
        handlers = handlers.before
    return handlers


def _read_prefix(kind: str) -> dict[str, str | None]:
    """The field that says whether torch made a guard, where its record leaves that out."""
    return {"prefix": torch_api.find_guard_prefix()} if kind == "guard_added_fast" else {}


def _make_read_shape_rows(
    records: ShapeRecords, kind: str, found: dict[str, Any], around: Places, compiling: Compiling, time_ns: int
) -> Made:
    """The rows of a record that torch did not write, from the variables that it would have been built from."""
    user = [Frame(each.filename, each.lineno, each.name, each.line) for each in found.pop("user_stack") or ()]
    record = {name: _TEXTS.get(name, str)(value) for name, value in found.items() if value is not None}
    compile_id, key = compiling
    # As torch's logs have them, so that a stack has the same key in both.
    stacks = user, [Frame(frame.file, frame.line, frame.function, frame.code) for frame in read_frames(around)]
    return records.decode(kind, record, {}, compile_id, time_ns, stacks, compile_key=key)


#: Field -> how torch writes it, where that is not `str`.
_TEXTS: dict[str, Callable[[Any], Any]] = {
    "vr": lambda bounds: bounds if isinstance(bounds, str) else f"[{bounds.lower}, {bounds.upper}]",
    "val": repr,
    "value": repr,
    "source": source_name,
    "sources": lambda sources: [source_name(source) for source in sources],
}
