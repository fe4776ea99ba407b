"""A progress bar: on a terminal only, and only if reading takes longer than a second."""

from __future__ import annotations

import sys
import time

from ..formatting import format_bytes, format_seconds, format_share

#: Seconds until the bar is first drawn, and between two drawings.
PATIENCE_S, INTERVAL_S = 1.0, 0.1
WIDTH = 30


class ProgressBar:
    """Bytes read of `total`, on stderr."""

    def __init__(self, total: int):
        self._total = total
        self._begin = time.monotonic()
        self._due = self._begin + PATIENCE_S
        self._is_shown = False
        self._is_on = sys.stderr is not None and sys.stderr.isatty()

    def show(self, done: int, what: str) -> None:
        """Draw the bar if it is due: `done` bytes are read, `what` is being read now."""
        if not self._is_on or (now := time.monotonic()) < self._due:
            return
        self._due, self._is_shown = now + INTERVAL_S, True
        share = min(done / self._total, 1.0) if self._total else 1.0
        bar = "█" * round(share * WIDTH)
        left = (now - self._begin) * (1 - share) / share if share else 0.0
        read = f"{format_bytes(done)} of {format_bytes(self._total)}"
        line = f"{format_share(share)} {bar:░<{WIDTH}} {read}, {format_seconds(left)} left"
        print(f"\r\x1b[K{line}  {what}"[:200], end="", file=sys.stderr, flush=True)

    def end(self) -> None:
        """Remove the bar."""
        if self._is_shown:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
