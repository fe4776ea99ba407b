"""Phases: torch announces the start and end of everything that it times. Also what compiles just now."""

from __future__ import annotations

import time
from threading import get_ident
from typing import Any

from ...decode.call_stacks import CallStacks
from ...decode.records.timed_events import ATTEMPT_PREFIX, clean_compile_id, is_phase_kept, make_phase
from ...recording import Made
from .. import _compat
from .._compat.tracing import callers
from ..hooks.patching import Args, Kwargs, Patch, Raised
from ..hooks.source import Source, made
from .frames import called_from

FRAME = "entire_frame_compile"
BACKWARD = "entire_backward_compile"
_ENTERING = (FRAME, BACKWARD)
#: Functions that are remembered by compile id, for the backwards that come later.
REMEMBERED = 10_000


class Running:
    """What one thread compiles: the phases that it is in, and the frames, one inside another if need be."""

    def __init__(self) -> None:
        self.stack: list[tuple[str, int]] = []
        self.frames: list[tuple[int, dict[str, Any]]] = []
        self.compile_id: str | None = None

    def enter(self, frame: dict[str, Any]) -> None:
        self.frames.append((len(self.stack), frame))

    def end(self, name: str) -> bool:
        """Forget a phase that has ended and the frames that began in it; False if it began before the watch did."""
        stack, frames = self.stack, self.frames
        if not stack or stack[-1][0] != name:
            if name not in [n for n, _ in stack]:
                return False
            while stack[-1][0] != name:
                stack.pop()  # torch mends its own stack the same way when an inner phase was left without an end.
        stack.pop()
        while frames and frames[-1][0] >= len(stack):
            frames.pop()
        return True

    def state(self) -> dict[str, Any]:
        """What a view shows of it; JSON."""
        stack, frames = list(self.stack), list(self.frames)  # Another thread's, and changing.
        frame = frames[-1][1] if frames else {}
        return {
            **{name: frame.get(name) for name in ("function", "file", "line", "trigger")},
            "compile_id": clean_compile_id(self.compile_id),
            "phases": [name for name, _ in stack],
            "started_ns": stack[0][1] if stack else None,
        }


class Phases(Source):
    name = "phases"

    @classmethod
    def probe(cls) -> None:
        _compat.event_logger()

    def open(self) -> None:
        self._stacks = self.recorder.shared.setdefault("stacks", CallStacks())

    def patches(self) -> list[Patch]:
        owner = _compat.event_logger()
        return [
            Patch(owner, "log_event_start", self._started, self.guarded),
            Patch(owner, "log_event_end", self._ended, self.guarded),
        ]

    def close(self) -> None:
        self.recorder.progress.clear()

    # The two hooks run some twenty times a compile, when nothing of ours is in the processor's caches: what
    # they don't touch is what makes them cheap.

    def _started(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        name, time_ns, metadata = args[1], args[2], args[3]
        progress, thread = self.recorder.progress, get_ident()
        running = progress.get(thread)
        if running is None:
            running = progress[thread] = Running()
        running.compile_id = metadata.get("compile_id")
        if name in _ENTERING or name.startswith(ATTEMPT_PREFIX):
            self._enter(running, name, metadata)
        running.stack.append((name, time_ns))

    def _enter(self, running: Running, name: str, metadata: dict[str, Any]) -> None:
        if name == FRAME:
            running.enter(self._frame(metadata))
        elif name == BACKWARD:
            known = self.recorder.frames.get(clean_compile_id(metadata.get("compile_id")), {})
            running.enter({**known, "trigger": "lazy_backward"})
        elif running.frames:
            running.frames[-1][1]["attempt"] = int(name[len(ATTEMPT_PREFIX) :])

    def _ended(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        name, end_ns, start_ns = args[1], args[2], args[4]
        progress, thread = self.recorder.progress, get_ident()
        running = progress.get(thread)
        if running is None or not running.end(name):
            return
        stack = running.stack
        if is_phase_kept(name, end_ns - start_ns, self.detail == "full"):
            parent = stack[-1][0] if stack else None
            self.emit(_phase, name, parent, len(stack), start_ns, end_ns, args[3].get("compile_id"))
        if not stack:
            progress.pop(thread, None)

    def _frame(self, metadata: dict[str, Any]) -> dict[str, Any]:
        """The function whose compile begins; remembered for its backward, which is announced without a name."""
        compiling = _compat.compiling_code()
        if compiling is None:
            return {}
        code, backend = compiling
        frame = {
            "function": code.co_name,
            "file": code.co_filename,
            "line": code.co_firstlineno,
            "backend": _compat.backend_name(backend),
            "trigger": "dynamo",
            "attempt": 0,
            "stack": None,
        }
        self.emit(called_from, self._stacks, frame, code, callers(), time.time_ns())
        if len(self.recorder.frames) >= REMEMBERED:
            self.recorder.frames.clear()
        self.recorder.frames[clean_compile_id(metadata.get("compile_id")) or ""] = frame
        return frame


def _phase(*told: Any) -> Made:
    return made(make_phase(*told))
