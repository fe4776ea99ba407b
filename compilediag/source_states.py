"""The states of the sources of a recording: which ones are written, and which ones are kept while the file can't be."""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Callable
from typing import Any

from .events import SourceStatus

INTERVAL_S = 1.0


class SourceStates:
    """`list_states` returns the state of each source; it is called once a second, and when all are asked for."""

    def __init__(self, list_states: Callable[[], list[SourceStatus]]):
        #: States that are not in the file, because it can't be written.
        self.unwritten: tuple[SourceStatus, ...] = ()
        self._list = list_states
        self._shown: dict[str | None, SourceStatus] = {}
        self._due = 0.0

    def find_changed(self, is_final: bool) -> list[SourceStatus]:
        """The states that have changed since they were written; none within a second, unless `is_final`."""
        if not self._is_due(is_final):
            return []
        changed: list[SourceStatus] = []
        for state in self._list():
            shown = self._shown.get(state.name)
            if shown is None or _outline(shown) != _outline(state):
                self._shown[state.name] = state
                changed.append(state)
        return changed

    def forget_written(self) -> None:
        """All are written again: some of the last ones are not in the file."""
        self._shown.clear()

    def keep_unwritten(self, lost: str | None, rank: int | None, is_final: bool) -> None:
        """Keep all here, as those of this process. Where the file is `lost`, what an active source saw is lost, too."""
        if not self.unwritten or self._is_due(is_final):
            self.unwritten = tuple(_describe_lost(state, lost, rank) for state in self._list())

    def reset(self) -> None:
        """Forget everything: another process begins."""
        self._shown, self.unwritten = {}, ()

    def _is_due(self, is_final: bool) -> bool:
        now = time.monotonic()
        if not is_final and now < self._due:
            return False
        self._due = now + INTERVAL_S
        return True


def _describe_lost(state: SourceStatus, lost: str | None, rank: int | None) -> SourceStatus:
    own = dataclasses.replace(state, rank=rank, pid=os.getpid())
    if lost is None or own.status != "active":
        return own
    return dataclasses.replace(own, status="failed", reason_code="lost", reason=lost)


def _outline(state: SourceStatus) -> tuple[Any, ...]:
    """What makes a state worth a new row; its cost to the millisecond, as the writer's own grows with each row."""
    return (state.status, state.reason, state.events, state.dropped, round(state.overhead_s or 0, 3))
