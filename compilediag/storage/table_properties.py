"""The tables of a session as properties. Imports pandas for its types alone."""

from __future__ import annotations

import abc
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd


class TableProperties(abc.ABC):
    """A DataFrame for each table; its columns are documented in `docs/tables.md`."""

    @abc.abstractmethod
    def table(self, name: str) -> pd.DataFrame:
        """The table with this name, as a new DataFrame."""

    @property
    def events(self) -> pd.DataFrame:
        """One row per event of any kind: id, time, kind, rank, pid, compile_id, compile_key, title, duration_s."""
        return self.table("events")

    @property
    def compiles(self) -> pd.DataFrame:
        """One row per compile of a frame, backward or autograd graph."""
        return self.table("compiles")

    @property
    def recompiles(self) -> pd.DataFrame:
        """One row per recompile, compared with the entry that has the fewest failing guards."""
        return self.table("recompiles")

    @property
    def guard_failures(self) -> pd.DataFrame:
        """One row per failing guard of one earlier entry at one recompile."""
        return self.table("guard_failures")

    @property
    def refused_calls(self) -> pd.DataFrame:
        """Calls that a stance, or `aot_compile`, kept from compiling: one row per function and failing guard, then
        counts of further calls.
        """
        return self.table("refused_calls")

    @property
    def cache_lookups(self) -> pd.DataFrame:
        """One row per lookup or store in a compile cache."""
        return self.table("cache_lookups")

    @property
    def autotune(self) -> pd.DataFrame:
        """One row per timing of an autotuning choice."""
        return self.table("autotune")

    @property
    def cudagraphs(self) -> pd.DataFrame:
        """One row per warm-up, capture, re-record or skip of a CUDA graph, or a number of replays."""
        return self.table("cudagraphs")

    @property
    def kernels(self) -> pd.DataFrame:
        """One row per kernel that was compiled, here or in a compile worker."""
        return self.table("kernels")

    @property
    def graph_breaks(self) -> pd.DataFrame:
        """One row per graph break."""
        return self.table("graph_breaks")

    @property
    def phases(self) -> pd.DataFrame:
        """One row per timed phase of a compile."""
        return self.table("phases")

    @property
    def trace_functions(self) -> pd.DataFrame:
        """One row per compile and function that Dynamo traced, at one line of its caller; needs detail "full"."""
        return self.table("trace_functions")

    @property
    def artifacts(self) -> pd.DataFrame:
        """One row per stored text (graph, code, guard tree); `artifact(event_id)` returns the text."""
        return self.table("artifacts")

    @property
    def dynamic_decisions(self) -> pd.DataFrame:
        """One row per input or attribute that torch made dynamic automatically."""
        return self.table("dynamic_decisions")

    @property
    def stacks(self) -> pd.DataFrame:
        """One row per frame of a call stack; `stack(key)` returns a whole stack."""
        return self.table("stacks")

    @property
    def symbolic_shapes(self) -> pd.DataFrame:
        """One row per symbol that was created or specialized, and per guard on symbols."""
        return self.table("symbolic_shapes")

    @property
    def export_problems(self) -> pd.DataFrame:
        """One row per problem of an export: a result that can be wrong, or a constraint that cannot hold."""
        return self.table("export_problems")

    @property
    def collectives(self) -> pd.DataFrame:
        """One row per collective operator of a graph, in the order in which they run."""
        return self.table("collectives")

    @property
    def calls(self) -> pd.DataFrame:
        """Calls of each compiled entry, and of each function that torch gave up on; sum the rows of an entry."""
        return self.table("calls")

    @property
    def vllm_configs(self) -> pd.DataFrame:
        """One row per part of a model that vLLM compiles: how it is cut, for which sizes, and what is switched on."""
        return self.table("vllm_configs")

    @property
    def vllm_compiles(self) -> pd.DataFrame:
        """One row per piece of a model and range of sizes that vLLM compiles it for."""
        return self.table("vllm_compiles")

    @property
    def warmup_ends(self) -> pd.DataFrame:
        """One row per process whose warm-up ended; `incidents` has what compiled later."""
        return self.table("warmup_ends")

    @property
    def rank_members(self) -> pd.DataFrame:
        """One row per rank of a job that was read group by group: `like` is the rank whose rows the tables have."""
        return self.table("rank_members")

    @property
    def sources(self) -> pd.DataFrame:
        """One row per source: its last state."""
        return self.table("sources")
