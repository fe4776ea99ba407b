"""What the program's own console shows of a recording: a line while something compiles, a warning after the warm-up.

Both are listeners (`recording/recorder.py`) and run in the writer's thread.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from .document import escape_unprintable
from .events import NS_PER_S, Compile, Recompile
from .formatting import format_function, format_line, format_seconds
from .recording.recorder import Turn
from .system import clock
from .system.interrupts import ignore
from .system.own_errors import log_warning

if TYPE_CHECKING:
    from .diagnosis.incidents import IncidentFinder

#: What `console` can be: True shows the line in a terminal, "always" also in a file or a pipe.
Console = bool | Literal["always"]

#: s that a compile runs before it is shown: most recompiles are over by then.
SHOWN_AFTER_S = 1.0
#: Columns of a line that is written again and again: a longer one would wrap.
MAX_COLUMNS = 79
#: To the first column, and erase the line.
_ERASE = "\r\x1b[K"
#: Recompiles whose compile is not over.
MAX_PENDING = 1_000


class IncidentWarnings:
    """Logs one line per incident, if the program has asked for it; what torch does not let us prevent, too."""

    _finder: IncidentFinder | None = None

    def __call__(self, turn: Turn) -> None:
        if turn.warmup is None or turn.warmup.on_compile == "count":
            return
        if self._finder is None:
            # A recording needs no diagnosis before.
            from .diagnosis.incidents import IncidentFinder

            self._finder = IncidentFinder()
        for incident in self._finder.add(turn.events, turn.warmup):
            # Where it raises, the program has the message.
            if incident.kind != "refused":
                log_warning("compilediag: after the warm-up: %s", format_line(incident, 1_000))


class ConsoleLine:
    """One line while something compiles, which ends with its seconds.

    Other lines stay whole: while it compiles, the cursor is in the first column, so that a progress bar or a log line
    is written over it and not behind it. In a file or a pipe only the last state is written.
    """

    def __init__(self, is_forced: bool = False):
        self._is_forced = is_forced
        self._recompiles: dict[str | None, Recompile] = {}
        #: Keys of the compiles that were shown, and what is shown now.
        self._shown: set[str | None] = set()
        self._text = ""

    def __call__(self, turn: Turn) -> None:
        stream = sys.stderr
        is_terminal = stream is not None and stream.isatty()
        if stream is None or not (is_terminal or self._is_forced):
            return
        for event in turn.events:
            if isinstance(event, Recompile):
                if len(self._recompiles) >= MAX_PENDING:
                    self._recompiles.clear()
                self._recompiles[event.compile_key] = event
        now_ns = clock.now_ns()
        running = [one for one in turn.running if now_ns - (one["started_ns"] or now_ns) >= SHOWN_AFTER_S * NS_PER_S]
        self._shown.update(one["compile_key"] for one in running)
        ended = [row for row in turn.events if isinstance(row, Compile) and self._is_shown(row)]
        lines = [f"compilediag: {self._describe_end(row)}" for row in ended]
        text = f"compilediag: {self._describe(running, now_ns)}"[:MAX_COLUMNS] if running and is_terminal else ""
        if not lines and text == self._text:
            return
        shown = escape_unprintable("".join(f"{line}\n" for line in lines) + text, stream.encoding)
        with ignore(OSError, ValueError):  # Nobody reads it, or it is closed.
            stream.write(f"{_ERASE if is_terminal else ''}{shown}{chr(13) if text else ''}")
            stream.flush()
        self._text = text

    def _is_shown(self, row: Compile) -> bool:
        is_long = row.duration_s is not None and row.duration_s >= SHOWN_AFTER_S
        return (row.compile_key in self._shown and row.compile_key is not None) or is_long

    def _describe(self, running: Sequence[Mapping[str, Any]], now_ns: int) -> str:
        """`recompiling forward (train.py:30), 38 s`: the one that runs longest, and how many more."""
        first = min(running, key=lambda one: one["started_ns"])
        verb = "recompiling" if first["compile_key"] in self._recompiles else "compiling"
        backward = ", backward" if first["trigger"] == "lazy_backward" else ""
        more = f" (and {len(running) - 1} more)" if len(running) > 1 else ""
        function = format_function(first["function"], first["file"], first["line"])
        seconds = int((now_ns - first["started_ns"]) / NS_PER_S)
        return f"{verb} {function}{backward}{more}, {format_seconds(float(seconds))}"

    def _describe_end(self, row: Compile) -> str:
        """`recompiled forward (train.py:30) at step 412 because x.shape[0] was 4, then 6: 39 s`."""
        from .diagnosis.incidents import describe_guard

        recompile = self._recompiles.pop(row.compile_key, None) if row.trigger != "lazy_backward" else None
        if row.trigger == "lazy_backward":
            self._shown.discard(row.compile_key)
        verb = "compiled" if recompile is None else "recompiled"
        backward = ", backward," if row.trigger == "lazy_backward" else ""
        step = f" at step {row.step}" if row.step is not None else ""
        change = describe_guard(recompile) if recompile is not None else None
        why = f" because {change}" if change else ""
        failed = "" if row.outcome in (None, "ok") else f" ({row.outcome})"
        function = format_function(row.function, row.file, row.line)
        return format_line(f"{verb} {function}{backward}{step}{why}{failed}: {format_seconds(row.duration_s)}", 400)
