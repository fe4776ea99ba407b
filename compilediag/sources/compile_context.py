"""What the sources of one recording share: the keys of compile attempts, and what is known of each attempt.

`EventSink` is the recorder, as a source sees it; `Feed` is a source, as the recorder sees it.
"""

from __future__ import annotations

import dataclasses
import itertools
import os
import secrets
import threading
import types
from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import Any, Generic, Protocol, TypedDict, TypeVar

from ..decode.cache_keys import KeyHistory
from ..decode.call_stacks import CallStacks
from ..decode.records.cache_records import CacheStore, LookUp
from ..events import Artifact, Event, SourceStatus
from .dynamo import torch_api

Value = TypeVar("Value")


class HasThreads(Protocol):
    """An object with attributes that are `PerThread`; `per_thread` has their values."""

    per_thread: threading.local


class PerThread(Generic[Value]):
    """An attribute with one value per thread, created by `create` when a thread first reads it. It goes when the thread
    ends; when it is deleted, the next read creates it anew.
    """

    def __init__(self, create: Callable[[], Value]):
        self._create = create

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, owner: HasThreads, cls: type) -> Value:
        values = owner.per_thread.__dict__
        try:
            value: Value = values[self._name]
        except KeyError:
            value = values[self._name] = self._create()
        return value

    def __set__(self, owner: HasThreads, value: Value) -> None:
        owner.per_thread.__dict__[self._name] = value

    def __delete__(self, owner: HasThreads) -> None:
        owner.per_thread.__dict__.pop(self._name, None)


#: Attempts whose keys are remembered, for the backwards, entries and kernels that come later.
MAX_REMEMBERED = 20_000


class AttemptColumns(TypedDict):
    """The compile attempt that a row belongs to; None outside of one."""

    compile_id: str | None
    compile_key: str | None


class FunctionColumns(TypedDict):
    """The function that is compiled; None where it is not known."""

    function: str | None
    file: str | None
    line: int | None


class OwnerColumns(AttemptColumns, FunctionColumns):
    """The compile attempt that a row belongs to, and its function."""


def code_columns(code: types.CodeType) -> FunctionColumns:
    return {"function": code.co_name, "file": code.co_filename, "line": code.co_firstlineno}


class CompileKeys:
    """Session-unique keys of the attempts of one recording. torch reuses its compile ids: after a reset, and in other
    threads.

    torch creates one CompileId object per attempt and hands that very object on: to the compile's context, to its
    lazy backward (in autograd's thread too), its cache entry, its CUDA graphs and its kernels. So the object, not
    its text, identifies the attempt. It is held here: its `id()` stays its own.
    """

    def __init__(self) -> None:
        #: Id of the object -> the object, its text, which torch makes anew each time, and the key.
        self._keys: OrderedDict[int, tuple[Any, str, str]] = OrderedDict()
        #: Text of an id -> the key, or None once several attempts have had that text.
        self._by_text: dict[str, str | None] = {}
        self._start_process()

    def _start_process(self) -> None:
        self._pid, self._token, self._count = os.getpid(), secrets.token_hex(4), itertools.count(1)

    def assign(self, compile_id: Any) -> str | None:
        """The key of an attempt by its CompileId object; a new one at the first call. None for None."""
        if compile_id is None:
            return None
        return (self._keys.get(id(compile_id)) or self._add(compile_id))[2]

    def make_key(self) -> str:
        """A key that no attempt has."""
        if os.getpid() != self._pid:  # A forked child counts its own attempts.
            self._start_process()
        return f"{self._token}.{next(self._count)}"

    def _add(self, compile_id: Any) -> tuple[Any, str, str]:
        key, text = self.make_key(), str(compile_id)
        known = self._keys[id(compile_id)] = compile_id, text, key
        self._by_text[text] = None if text in self._by_text else key
        if len(self._keys) > MAX_REMEMBERED:
            self._keys.popitem(last=False)
        return known

    def find(self, compile_id: Any) -> str | None:
        """The key of an attempt; None if it started before this recording."""
        known = self._keys.get(id(compile_id))
        return None if known is None else known[2]

    def format(self, compile_id: Any) -> str:
        """The text of an id."""
        known = self._keys.get(id(compile_id))
        return str(compile_id) if known is None else known[1]

    def guess(self, compile_id: Any) -> str | None:
        """As `find`, and for an id that torch has copied the key of the only attempt with its text, if it is one."""
        if compile_id is None:
            return None
        return self.find(compile_id) or self._by_text.get(str(compile_id))

    def match(self, text: str | None) -> str | None:
        """The key of an attempt by the text of its id: that of this thread's attempt if it has that text, else the
        only one with it. torch announces some phases, of CUDA graphs, with the id of a compile that is over.
        """
        current, key = self.current()
        return key if current == text else self.guess(text)

    def current(self) -> tuple[str | None, str | None]:
        """(compile id, compile key) of the compile that runs in this thread; None outside of a compile."""
        compile_id = torch_api.current_compile_id()
        if compile_id is None:
            return None, None
        _, text, key = self._keys.get(id(compile_id)) or self._add(compile_id)
        return text, key


class CompileContext:
    """What the sources of one recording know about its compile attempts, and the columns that name one in a row."""

    #: The look-ups and stores in caches that a thread is in, the innermost last.
    cache_records: PerThread[list[LookUp | CacheStore]] = PerThread(list)

    def __init__(self) -> None:
        self.per_thread = threading.local()
        self.keys = CompileKeys()
        #: Compile key -> what is known in addition to torch's metrics: function, file, line, backend, attempt, stack.
        self.frames: dict[str, dict[str, Any]] = {}
        self.stacks = CallStacks()
        #: The keys of earlier look-ups, from when a source of a cache first needs them.
        self.key_history: KeyHistory | None = None

    def function_columns(self, compile_key: str | None) -> FunctionColumns:
        """function, file and line of an attempt; None where they are not known."""
        frame = self.frames.get(compile_key or "", {})
        return {"function": frame.get("function"), "file": frame.get("file"), "line": frame.get("line")}

    def current_attempt(self) -> AttemptColumns:
        """compile_id and compile_key of the attempt that runs in this thread; None outside of one."""
        compile_id, key = self.keys.current()
        return {"compile_id": compile_id, "compile_key": key}

    def current_columns(self) -> OwnerColumns:
        """compile_id, compile_key, function, file and line of the attempt that runs in this thread; None outside of
        one.
        """
        compile_id, key = self.keys.current()
        return {"compile_id": compile_id, "compile_key": key, **self.function_columns(key)}


#: What a source's function returns: one event, or several, and artifacts with their text.
Made = Event | Iterable["Event | tuple[Artifact, str]"] | None
#: At most so many hand-overs wait for the writer; more are dropped and counted.
MAX_WAITING = 200_000


class Noting(Protocol):
    """Counts errors of its own."""

    def note_error(self, error: BaseException) -> None: ...


class Feed(Noting, Protocol):
    """A source, as the recorder sees it."""

    events: int
    dropped: int

    @property
    def name(self) -> str: ...
    def status(self) -> SourceStatus: ...


class Counter(Noting, Protocol):
    """Counts in the user's program, and hands over its counts at every `tick`."""

    def tick(self, final: bool = False) -> None: ...
    def reset_after_fork(self) -> None: ...


class Running(Protocol):
    """The compile that runs in one thread."""

    def state(self) -> dict[str, Any]: ...


@dataclasses.dataclass
class SessionFacts:
    """What is known of a session when it ends, for its meta."""

    device: str | None = None
    #: torch's setting of the same name, as text.
    static_sources: str | None = None
    #: The last of the program's own steps.
    last_step: int | None = None

    def to_meta(self) -> dict[str, Any]:
        """Those that are known."""
        return {name: value for name, value in dataclasses.asdict(self).items() if value is not None}


class EventSink(Protocol):
    """The recorder, as a source sees it."""

    #: What the sources of the recording share.
    context: CompileContext
    facts: SessionFacts
    #: They hand over their counts before every batch.
    counters: list[Counter]
    #: Thread -> the compile that runs in it.
    progress: dict[int, Running]
    #: True when everything is written: hooks that are left have no effect.
    is_ended: bool

    def put(self, feed: Feed, make: Callable[..., Made], *args: Any) -> None:
        """Hand over what will be `make(*args)`, which runs in the writer's thread."""

    def find_step(self, time_ns: int) -> int | None:
        """The program's step that ran at this time; None without steps."""

    def release(self, counter: Counter) -> None:
        """Ask `counter` for the last time, once no other thread asks it any more."""
