"""The tables of a session as properties. Imports pandas for its types alone."""

from __future__ import annotations

import abc
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd


class TableProperty(property):
    """The property of a session that is the table of that name, as a new DataFrame."""

    def __init__(self, doc: str):
        super().__init__(lambda session: session.table(self._name))
        self.__doc__ = doc

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    if TYPE_CHECKING:

        def __get__(self, session: Any, owner: type | None = None, /) -> pd.DataFrame: ...  # type: ignore[override]


class TableProperties(abc.ABC):
    """A DataFrame for each table; its columns are documented in `docs/tables.md`."""

    @abc.abstractmethod
    def table(self, name: str) -> pd.DataFrame:
        """The table with this name, as a new DataFrame."""

    events = TableProperty(
        "One row per event of any kind: id, time, kind, rank, pid, compile_id, compile_key, title, duration_s."
    )
    compiles = TableProperty("One row per compile of a frame, backward or autograd graph.")
    recompiles = TableProperty("One row per recompile, compared with the entry that has the fewest failing guards.")
    guard_failures = TableProperty("One row per failing guard of one earlier entry at one recompile.")
    refused_calls = TableProperty(
        "Calls that a stance, or `aot_compile`, kept from compiling: one row per function and failing guard, then "
        "counts of further calls."
    )
    cache_lookups = TableProperty("One row per lookup or store in a compile cache.")
    autotune = TableProperty("One row per timing of an autotuning choice.")
    cudagraphs = TableProperty(
        "One row per warm-up, capture, re-record or skip of a CUDA graph, or a number of replays."
    )
    kernels = TableProperty("One row per kernel that was compiled, here or in a compile worker.")
    graph_breaks = TableProperty("One row per graph break.")
    phases = TableProperty("One row per timed phase of a compile.")
    trace_functions = TableProperty(
        'One row per compile and function that Dynamo traced, at one line of its caller; needs detail "full".'
    )
    artifacts = TableProperty(
        "One row per stored text (graph, code, guard tree); `artifact(event_id)` returns the text."
    )
    dynamic_decisions = TableProperty("One row per input or attribute that torch made dynamic automatically.")
    stacks = TableProperty("One row per frame of a call stack; `stack(key)` returns a whole stack.")
    symbolic_shapes = TableProperty("One row per symbol that was created or specialized, and per guard on symbols.")
    export_problems = TableProperty(
        "One row per problem of an export: a result that can be wrong, or a constraint that cannot hold."
    )
    collectives = TableProperty("One row per collective operator of a graph, in the order in which they run.")
    calls = TableProperty(
        "Calls of each compiled entry, and of each function that torch gave up on; sum the rows of an entry."
    )
    vllm_configs = TableProperty(
        "One row per part of a model that vLLM compiles: how it is cut, for which sizes, and what is switched on."
    )
    vllm_compiles = TableProperty("One row per piece of a model and range of sizes that vLLM compiles it for.")
    warmup_ends = TableProperty("One row per process whose warm-up ended; `incidents` has what compiled later.")
    rank_members = TableProperty(
        "One row per rank of a job that was read group by group: `like` is the rank whose rows the tables have."
    )
    sources = TableProperty("One row per source: its last state.")
