"""The typed events: one frozen dataclass per kind; every field is a documented column of a table.

A source or a decoder makes an event, a session stores it, and it is one row of its table. A column is declared once,
here: `docs/tables.md`, the SQL schema, the DataFrames, redaction, export, coverage and the row types of the JavaScript
are derived from the declaration. Missing is None (NA in a DataFrame), never 0 or "".

`time_ns` is when the event began (Unix time in nanoseconds). Sources leave `rank` and `pid` None: the recorder writes
those of its process.

To add a table: declare its events in a module here, add the class to `KINDS` and increase `SCHEMA_VERSION` below, and
add a property to `TableProperties` in `storage/table_properties.py`. Nothing else names tables one by one.
"""

from __future__ import annotations

import dataclasses
from typing import Any, cast

from .base import ColumnSpec, Event, UserData, column, describe_column
from .caching import CACHE_ACTIONS, CACHE_OUTCOMES, CACHES, COMPILE_CACHE_SOURCES, COMPILE_CACHES, CacheLookup
from .compiling import Artifact, Compile, DynamicDecision, GraphBreak, Phase, VllmCompile, VllmConfig
from .guarding import GUARD_KINDS, REFUSED_BY, GuardFailure, Recompile, RefusedCall
from .rows import RowList, Rows
from .running import CUDAGRAPH_ACTIONS, RAN, Calls, CudaGraphAction
from .sources import SOURCE_REASONS, SOURCE_STATES, RankMember, SourceStatus
from .tracing import EXPORT_PROBLEMS, SHAPE_ACTIONS, Collective, ExportProblem, StackFrame, SymbolicShape
from .tuning import TUNING_STAGES, AutotuneChoice, KernelCompile

__all__ = [
    "BY_TABLE",
    "CACHES",
    "CACHE_ACTIONS",
    "CACHE_OUTCOMES",
    "COMPILE_CACHES",
    "COMPILE_CACHE_SOURCES",
    "CUDAGRAPH_ACTIONS",
    "EXPORT_PROBLEMS",
    "GUARD_KINDS",
    "KINDS",
    "RAN",
    "REFUSED_BY",
    "SCHEMA_VERSION",
    "SHAPE_ACTIONS",
    "SOURCE_REASONS",
    "SOURCE_STATES",
    "TUNING_STAGES",
    "Artifact",
    "AutotuneChoice",
    "CacheLookup",
    "Calls",
    "Collective",
    "ColumnSpec",
    "Compile",
    "CudaGraphAction",
    "DynamicDecision",
    "Event",
    "ExportProblem",
    "GraphBreak",
    "GuardFailure",
    "KernelCompile",
    "Phase",
    "RankMember",
    "Recompile",
    "RefusedCall",
    "RowList",
    "Rows",
    "SourceStatus",
    "StackFrame",
    "SymbolicShape",
    "UserData",
    "VllmCompile",
    "VllmConfig",
    "column",
    "columns",
    "describe_column",
    "list_sources",
]

#: Version of all tables together; session files of another one are refused.
#: 2: autotune, cudagraphs and kernels; more columns of cache_lookups.
#: 3: stacks, symbolic shapes, export problems and collectives.
#: 4: compile keys.
#: 5: calls and parameters of stack frames; blocks of compiles.
#: 6: analyzed entries of recompiles; ranks of a job that was read group by group.
#: 7: refused calls; limits and regions of compiles, and what torch did about a failure; what vLLM compiles.
#: 8: what looks the same as the expected object; symbols of guarded expressions.
SCHEMA_VERSION = 8
KINDS: tuple[type[Event], ...] = (
    Compile,
    Recompile,
    GuardFailure,
    RefusedCall,
    CacheLookup,
    AutotuneChoice,
    CudaGraphAction,
    KernelCompile,
    GraphBreak,
    Phase,
    Artifact,
    DynamicDecision,
    StackFrame,
    SymbolicShape,
    ExportProblem,
    Collective,
    Calls,
    VllmConfig,
    VllmCompile,
    RankMember,
    SourceStatus,
)
BY_TABLE: dict[str, type[Event]] = {cls.table: cls for cls in KINDS}
WITH_DURATION = (Compile, Phase, KernelCompile, CacheLookup, VllmCompile)
DURATION = describe_column("float64", "duration", unit="s")


def columns(cls: type[Event]) -> dict[str, ColumnSpec]:
    """The columns of a kind beside the common ones, in order, by name.

    `duration_s` is a common field of all events but a column only of the tables that list it.
    """
    return _COLUMNS[cls.table]


def _read_columns(cls: type[Event]) -> dict[str, ColumnSpec]:
    own = {f.name: _read_column(f) for f in dataclasses.fields(cls) if f.metadata}
    return {**({"duration_s": DURATION} if cls in WITH_DURATION else {}), **own}


def _read_column(field: dataclasses.Field[Any]) -> ColumnSpec:
    column = cast(ColumnSpec, dict(field.metadata))
    if column["dtype"] == "json":
        column["shape"] = str(field.type).removesuffix(" | None")
    return column


#: By table: a reload of a module makes other classes.
_COLUMNS = {cls.table: _read_columns(cls) for cls in KINDS}


def list_sources(cls: type[Event]) -> tuple[str, ...]:
    """The names of the sources that fill a table."""
    return tuple(dict.fromkeys(source for column in columns(cls).values() for source in column["sources"]))
