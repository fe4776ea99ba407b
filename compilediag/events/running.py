"""What ran: calls of compiled code and of functions that run eagerly after all, and what became of CUDA graphs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from .base import Event, column

#: What a `ran` column can name: a compiled entry, or the function itself, under torch.compile but not compiled.
RAN = ("compiled", "eager")


@dataclass(frozen=True, slots=True, kw_only=True)
class Calls(Event):
    """Calls of one entry, or of one function that torch gave up on, since its row before: sum them up."""

    kind: ClassVar[str] = "calls"
    table: ClassVar[str] = "calls"
    shown_first: ClassVar[tuple[str, ...]] = ("function", "line", "ran", "count", "total_s")

    function: str | None = column("string", "name of the code object that was compiled", user_data="name")
    file: str | None = column("string", "file of the code object", user_data="path")
    line: int | None = column("Int64", "first line of the code object")
    ran: str | None = column(
        "string",
        "compiled (the entry of compile_id), or eager (the function itself, because torch gave up on it)",
        sources=("calls",),
    )
    count: int | None = column(
        "Int64", "calls that began since the previous row of this entry, or since `time` in its first row"
    )
    timed: int | None = column("Int64", "calls with a known duration; not those that raised, no generators")
    total_s: float | None = column(
        "float64", "time that these took on the host, callees included, compiles excluded", unit="s"
    )
    min_s: float | None = column("float64", "shortest call so far", unit="s")
    first_s: float | None = column("float64", "duration of the first timed call, in the row that counts it", unit="s")

    @property
    def title(self) -> str:
        return f"{self.function or '?'} ran {self.ran} {self.count}x"


#: What an `action` column of CUDA graphs can name. `replays` and `eager` (calls that ran without a graph) have a
#: count, and are there only if they were asked for; `limit`: too many re-records, from there the function runs
#: eagerly; `demoted`: torch copies an input before each replay from there on, because its address changed too often;
#: `stuck`: it runs in its warm-up again and again and is never captured; `invalidated`: outputs that were
#: alive when a later run took their memory; `overwritten`: torch's error when one of them was used after all.
CUDAGRAPH_ACTIONS = (
    "warmup",
    "record",
    "rerecord",
    "skip",
    "partition",
    "replays",
    "eager",
    "invalidated",
    "overwritten",
    "limit",
    "demoted",
    "stuck",
    "failed",
    "user_capture",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CudaGraphAction(Event):
    kind: ClassVar[str] = "cudagraph"
    table: ClassVar[str] = "cudagraphs"
    shown_first: ClassVar[tuple[str, ...]] = (
        "function",
        "line",
        "mode",
        "action",
        "sizes",
        "mismatch",
        "reason",
        "input",
    )

    action: str | None = column(
        "string", "one of the CUDA graph actions", sources=("cudagraphs", "cudagraph_skips", "captures")
    )
    function_id: int | None = column("Int64", "torch's number of the compiled graph")
    graph_id: int | None = column("Int64", "torch's number of the captured graph")
    parent_id: int | None = column("Int64", "the captured graph that ran before it on its path; NA at a root")
    function: str | None = column("string", "name of the code object that was compiled", user_data="name")
    file: str | None = column("string", "file of the code object", user_data="path")
    line: int | None = column("Int64", "first line of the code object")
    mode: str | None = column("string", "forward, backward or inference")
    backend: str | None = column(
        "string", "trees (mode=reduce-overhead), no_trees (the same without trees), cudagraphs (that backend) or user"
    )
    duration_ms: float | None = column("float64", "duration of the warm-up or capture", unit="ms")
    mismatch: str | None = column("string", "for a re-record: torch's name of the violated invariant")
    input: str | None = column(
        "string", "input that violated it: its position, and its name if known", user_data="content"
    )
    reason: str | None = column(
        "string", "torch's text: why it was skipped, re-recorded, or is not replayed", user_data="content"
    )
    user_file: str | None = column("string", "file of the user's line", user_data="path")
    user_line: int | None = column("Int64", "number of that line")
    user_code: str | None = column("string", "text of that line", user_data="code")
    count: int | None = column("Int64", "number of times, for an action that is counted")
    counted: bool | None = column("boolean", "for a skip: true if torch's counter cudagraph_skips includes it")
    sizes: str | None = column(
        "string", "sizes of the inputs that can differ at the next call: 4x3, 8", user_data="content"
    )
    copied_inputs: int | None = column("Int64", "inputs that are copied to a fixed address before every replay")
    partitions: int | None = column("Int64", "parts into which the graph was split so that the others can be captured")
    captured_parts: int | None = column("Int64", "parts that are captured")
    nodes: int | None = column("Int64", "nodes of the captured graph")
    pool_bytes: int | None = column("Int64", "size of the graphs' memory pool afterwards", unit="bytes")
    device: str | None = column("string", "device of the graph")

    @property
    def title(self) -> str:
        return f"{self.action} {self.function or ''}".strip()
