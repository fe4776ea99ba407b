"""A progress bar for people who wait: on a terminal only, and only when it takes longer than a moment."""

from __future__ import annotations

import sys
import time

#: Seconds until it is first shown, and between two drawings.
PATIENCE_S, INTERVAL_S = 1.0, 0.1
WIDTH = 30


class Progress:
    """Bytes read of `total`, on stderr."""

    def __init__(self, total: int):
        self._total = total
        self._begin = time.monotonic()
        self._due = self._begin + PATIENCE_S
        self._shown = False
        self._on = sys.stderr is not None and sys.stderr.isatty()

    def at(self, done: int, what: str) -> None:
        """`done` bytes are read; `what` is being read now."""
        now = time.monotonic()
        if not self._on or now < self._due:
            return
        self._due, self._shown = now + INTERVAL_S, True
        share = min(done / self._total, 1.0) if self._total else 1.0
        bar = "█" * round(share * WIDTH)
        left = (now - self._begin) * (1 - share) / share if share else 0.0
        line = f"{share:4.0%} {bar:░<{WIDTH}} {done / 2**20:,.0f} of {self._total / 2**20:,.0f} MB, {left:,.0f} s left"
        print(f"\r\x1b[K{line}  {what}"[:200], end="", file=sys.stderr, flush=True)

    def end(self) -> None:
        if self._shown:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
