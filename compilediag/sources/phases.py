"""Phases: torch announces the start and end of everything that it times. Also what compiles just now."""

from __future__ import annotations

import threading
from typing import Any

from ..events import Phase
from ..recorder import Made
from . import _compat
from .base import Source, made
from .patching import Patch

#: Shorter phases are not kept: in `full` of the dozens of passes over a graph, in `lean` of all phases.
FLOOR_NS = 1_000_000
PASS_PREFIX = "pass."
FRAME = "entire_frame_compile"
BACKWARD = "entire_backward_compile"
ATTEMPT = "compile_attempt_"
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

    def leave(self) -> None:
        """Forget the frames whose first phase has ended."""
        while self.frames and self.frames[-1][0] >= len(self.stack):
            self.frames.pop()

    def state(self) -> dict[str, Any]:
        """What a view shows of it; JSON."""
        stack, frames = list(self.stack), list(self.frames)  # Another thread's, and changing.
        frame = frames[-1][1] if frames else {}
        return {
            **{name: frame.get(name) for name in ("function", "file", "line", "trigger")},
            "compile_id": self.compile_id,
            "phases": [name for name, _ in stack],
            "started_ns": stack[0][1] if stack else None,
        }


class Phases(Source):
    name = "phases"

    @classmethod
    def probe(cls) -> None:
        _compat.event_logger()

    def patches(self) -> list[Patch]:
        owner = _compat.event_logger()
        return [
            Patch(owner, "log_event_start", self._started, self.guarded),
            Patch(owner, "log_event_end", self._ended, self.guarded),
        ]

    def close(self) -> None:
        self.recorder.progress.clear()

    def _started(self, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any, error: BaseException | None) -> None:
        _, name, time_ns, metadata, *_ = args
        thread = threading.get_ident()
        running = self.recorder.progress.get(thread)
        if running is None:
            running = self.recorder.progress[thread] = Running()
        if name == FRAME:
            running.enter(self._frame(metadata))
        elif name.startswith(ATTEMPT) and running.frames:
            running.frames[-1][1]["attempt"] = int(name[len(ATTEMPT) :])
        elif name == BACKWARD:
            running.enter({**self.recorder.frames.get(_compile_id(metadata), {}), "trigger": "lazy_backward"})
        running.stack.append((name, time_ns))
        running.compile_id = _compile_id(metadata)

    def _ended(self, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any, error: BaseException | None) -> None:
        _, name, time_ns, metadata, start_ns, *_ = args
        thread = threading.get_ident()
        running = self.recorder.progress.get(thread)
        if running is None or name not in (n for n, _ in running.stack):
            return  # It began before the watch did.
        while running.stack.pop()[0] != name:
            pass  # torch mends its own stack the same way when an inner phase was left without an end.
        parent = running.stack[-1][0] if running.stack else None
        if time_ns - start_ns >= FLOOR_NS or (self.detail == "full" and not name.startswith(PASS_PREFIX)):
            self.emit(_phase, name, parent, len(running.stack), start_ns, time_ns, _compile_id(metadata))
        running.leave()
        if not running.stack:
            self.recorder.progress.pop(thread, None)

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
        }
        if len(self.recorder.frames) >= REMEMBERED:
            self.recorder.frames.clear()
        self.recorder.frames[_compile_id(metadata) or ""] = frame
        return frame


def _compile_id(metadata: dict[str, Any]) -> str | None:
    compile_id = metadata.get("compile_id")
    return None if compile_id in (None, "None") else str(compile_id)


def _phase(name: str, parent: str | None, depth: int, start_ns: int, end_ns: int, compile_id: str | None) -> Made:
    seconds = (end_ns - start_ns) / 1e9
    return made(
        Phase(time_ns=start_ns, duration_s=seconds, compile_id=compile_id, name=name, parent=parent, depth=depth)
    )
