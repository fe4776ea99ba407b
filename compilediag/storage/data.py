"""The tables of a session by their names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import tables

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable

    import pandas as pd


class SessionTables:
    """A DataFrame a table; its columns are documented in `docs/tables.md`."""

    if TYPE_CHECKING:
        _lock: threading.RLock
        _table: Callable[[str], pd.DataFrame]

    @property
    def events(self) -> pd.DataFrame:
        """Every event, one row each: id, time, kind, rank, pid, compile_id, title, duration_s."""
        return self._table("events")

    @property
    def compiles(self) -> pd.DataFrame:
        """One row a compile of a frame, backward or autograd graph."""
        return self._table("compiles")

    @property
    def recompiles(self) -> pd.DataFrame:
        """One row a recompile, told against its closest earlier entry; `lost_s` is what it cost."""
        with self._lock:
            return tables.with_lost_seconds(self._table("recompiles"), self._table("compiles"))

    @property
    def guard_failures(self) -> pd.DataFrame:
        """One row a failing guard of one earlier entry at one recompile."""
        return self._table("guard_failures")

    @property
    def cache_lookups(self) -> pd.DataFrame:
        """One row a look-up or store in a compile cache."""
        return self._table("cache_lookups")

    @property
    def autotune(self) -> pd.DataFrame:
        """One row a choice timed once."""
        return self._table("autotune")

    @property
    def cudagraphs(self) -> pd.DataFrame:
        """One row a warm-up, capture, re-record or skip of a CUDA graph, or a number of replays."""
        return self._table("cudagraphs")

    @property
    def kernels(self) -> pd.DataFrame:
        """One row a kernel that was compiled, here or in a compile worker."""
        return self._table("kernels")

    @property
    def graph_breaks(self) -> pd.DataFrame:
        """One row a graph break."""
        return self._table("graph_breaks")

    @property
    def phases(self) -> pd.DataFrame:
        """One row a timed phase of a compile."""
        return self._table("phases")

    @property
    def artifacts(self) -> pd.DataFrame:
        """One row a kept text (graph, code, guard tree); `artifact(event_id)` gives the text."""
        return self._table("artifacts")

    @property
    def dynamic_decisions(self) -> pd.DataFrame:
        """One row an input or attribute that torch made dynamic by itself."""
        return self._table("dynamic_decisions")

    @property
    def stacks(self) -> pd.DataFrame:
        """One row a frame of a call stack; `stack(key)` gives a whole one."""
        return self._table("stacks")

    @property
    def symbolic_shapes(self) -> pd.DataFrame:
        """One row a symbol that was made or fixed, and a guard on symbols."""
        return self._table("symbolic_shapes")

    @property
    def export_problems(self) -> pd.DataFrame:
        """One row a thing that an export could not do soundly."""
        return self._table("export_problems")

    @property
    def collectives(self) -> pd.DataFrame:
        """One row a collective operator of a graph, in the order in which they run."""
        return self._table("collectives")

    @property
    def calls(self) -> pd.DataFrame:
        """How often each compiled entry, and each function that torch gave up on, was called; to be summed up."""
        return self._table("calls")

    @property
    def sources(self) -> pd.DataFrame:
        """One row a source of this session: its last state."""
        return self._table("sources")
