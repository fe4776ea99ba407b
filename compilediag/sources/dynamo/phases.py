"""Phases: torch announces the start and end of everything that it times. Also: what compiles just now."""

from __future__ import annotations

from collections import deque
from threading import get_ident
from typing import Any

from ... import clock
from ...decode.records.timed_events import ATTEMPT_PREFIX, clean_compile_id, is_phase_kept, make_phase
from ...decode.repeated_blocks import ModuleOp, find_repeated_blocks
from ..hooks.patches import Args, Kwargs, Patch, Raised
from ..hooks.sink import MAX_WAITING, EventSink, Made
from ..hooks.source import Source
from . import torch_api
from .stack_frames import add_call_stack, callers_of_compile

FRAME = "entire_frame_compile"
BACKWARD = "entire_backward_compile"
BACKEND = "backend_compile"
_ENTERING = (FRAME, BACKWARD)
#: Name, parent, depth, start and end in ns, compile id as torch announces it, compile key.
EndedPhase = tuple[str, str | None, int, int, int, str | None, str | None]
#: Attempts whose functions are remembered, for the backwards that come later.
MAX_REMEMBERED = 10_000


class CompilingThread:
    """What one thread compiles: the phases that it is in, and the frames, nested where compiles are."""

    def __init__(self) -> None:
        self.stack: list[tuple[str, int]] = []
        self.frames: list[tuple[int, dict[str, Any]]] = []
        self.compile_id: str | None = None
        self.compile_key: str | None = None
        #: Keys of the attempts that began here, by the text of their id.
        self.keys: dict[str | None, str | None] = {}

    def enter(self, frame: dict[str, Any]) -> None:
        self.frames.append((len(self.stack), frame))

    def end(self, name: str) -> int | None:
        """Forget a phase that has ended and the frames that started in it. Returns when it started; None if the watch
        began later.
        """
        stack, frames = self.stack, self.frames
        if not stack or stack[-1][0] != name:
            if name not in [n for n, _ in stack]:
                return None
            while stack[-1][0] != name:
                stack.pop()  # torch repairs its own stack the same way when an inner phase has no end.
        _, start_ns = stack.pop()
        while frames and frames[-1][0] >= len(stack):
            frames.pop()
        return start_ns

    def state(self) -> dict[str, Any]:
        """What a view shows of it, as JSON values."""
        stack, frames = list(self.stack), list(self.frames)  # They belong to another thread, which changes them.
        frame = frames[-1][1] if frames else {}
        return {
            **{name: frame.get(name) for name in ("function", "file", "line", "trigger")},
            "compile_id": clean_compile_id(self.compile_id),
            "compile_key": self.compile_key,
            "phases": [name for name, _ in stack],
            "started_ns": stack[0][1] if stack else None,
        }


class Phases(Source):
    name = "phases"
    needs = (torch_api.EVENT_START, torch_api.EVENT_END, torch_api.COMPILE_CONTEXT)

    def __init__(self, recorder: EventSink, detail: str):
        super().__init__(recorder, detail)
        self._keys = self.context.keys
        #: Phases that have ended since the last batch, of all threads in one order, which is that of torch's log.
        self._ended: deque[EndedPhase] = deque()

    def open(self) -> None:
        self.recorder.counters.append(self)
        self._stacks = self.context.stacks

    def patches(self) -> list[Patch]:
        return [
            self.watch(torch_api.EVENT_START, self._on_started),
            self.watch(torch_api.EVENT_END, self._on_ended),
        ]

    def close(self) -> None:
        self.recorder.release(self)
        self.recorder.progress.clear()

    def tick(self, final: bool = False) -> None:
        """Hand over the phases that have ended. Called by the writer's thread before every batch."""
        ended = [self._ended.popleft() for _ in range(len(self._ended))]
        if ended:
            self.emit(_make_rows, ended)

    def reset_after_fork(self) -> None:
        """In a forked child: drop the phases so far, which the parent writes."""
        self._ended.clear()

    def forget_calls(self) -> None:
        super().forget_calls()
        self.recorder.progress.pop(get_ident(), None)

    # The two hooks run some twenty times per compile, when nothing of ours is in the processor's caches: they are
    # cheap because they touch little.

    def _on_started(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        name, time_ns, metadata = args[1], clock.convert(args[2]), args[3]
        progress, thread = self.recorder.progress, get_ident()
        running = progress.get(thread)
        if not isinstance(running, CompilingThread):
            running = progress[thread] = CompilingThread()
        running.compile_id = metadata.get("compile_id")
        if name in _ENTERING or name.startswith(ATTEMPT_PREFIX):
            self._enter(running, name)
        elif name == BACKEND and running.frames:
            self._read_graph(running.frames[-1][1])
        running.stack.append((name, time_ns))

    def _enter(self, running: CompilingThread, name: str) -> None:
        if name in _ENTERING:
            compile_id, running.compile_key = self._keys.current()
            running.keys[compile_id] = running.compile_key
        if name == FRAME:
            running.enter(self._read_frame(running.compile_key))
        elif name == BACKWARD:
            known = self.context.frames.get(running.compile_key or "", {})
            running.enter({**known, "trigger": "lazy_backward"})
        elif running.frames:
            running.frames[-1][1]["attempt"] = int(name[len(ATTEMPT_PREFIX) :])

    def _on_ended(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        name, end_ns = args[1], clock.convert(args[2])
        progress, thread = self.recorder.progress, get_ident()
        running = progress.get(thread)
        if not isinstance(running, CompilingThread) or (start_ns := running.end(name)) is None:
            return
        stack = running.stack
        if is_phase_kept(name, end_ns - start_ns, self.detail == "full"):
            parent, compile_id = stack[-1][0] if stack else None, args[3].get("compile_id")
            key = running.keys.get(compile_id) or self._keys.match(clean_compile_id(compile_id))
            if len(self._ended) < MAX_WAITING:
                self._ended.append((name, parent, len(stack), start_ns, end_ns, compile_id, key))
            else:
                self.dropped += 1
        if not stack:
            progress.pop(thread, None)

    def _read_graph(self, frame: dict[str, Any]) -> None:
        """The graph that goes to the backend: which blocks repeat is found out in the writer's thread."""
        graph = torch_api.compiling_graph()
        if graph is not None:
            self.emit(_add_blocks, frame, torch_api.read_module_ops(graph))

    def _read_frame(self, key: str | None) -> dict[str, Any]:
        """The function whose compile starts; remembered for its backward, which is announced without a name."""
        compiling = torch_api.compiling_code()
        if compiling is None:
            return {}
        code, backend = compiling
        frame = {
            **torch_api.code_columns(code),
            "backend": torch_api.backend_name(backend),
            "trigger": "dynamo",
            "attempt": 0,
            "region": torch_api.current_region(),
            "stack": None,
        }
        self.emit(add_call_stack, self._stacks, frame, code, callers_of_compile(), clock.now_ns())
        if len(self.context.frames) >= MAX_REMEMBERED:
            self.context.frames.clear()
        if key is not None:
            self.context.frames[key] = frame
        return frame


def _add_blocks(frame: dict[str, Any], ops: list[ModuleOp]) -> Made:
    """Add the repeated blocks to what is known of a compile, before its row is made."""
    frame["blocks"] = find_repeated_blocks(ops)
    return ()


def _make_rows(ended: list[EndedPhase]) -> Made:
    return [make_phase(*phase) for phase in ended]
