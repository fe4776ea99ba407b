"""The records that vLLM writes to torch's structured trace, as rows of `VllmCompile` and `VllmConfig`.

In the order in which vLLM writes them, all within one compile of Dynamo:

- `vllm_compile_event`, an artifact, which only some versions write: {"type": "fresh_compile" or "aot_cache_hit"}.
- `vllm_compilation_config`, an artifact: its configuration, lists as texts with commas.
- `vllm_piecewise_split_graph`, a graph dump: the graph that calls all pieces.
- `vllm_piecewise_compile_start`, an artifact: a piece and the range of sizes that it is compiled for now. After the
  first of each piece comes its graph, a graph dump with the name `vllm_` and that of the piece.
- `vllm_execution_code`, an artifact, from version 0.20 on: the code that calls all pieces, when these are compiled.

The compiles of pieces follow each other, so one ends where the next one begins.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Iterator
from typing import Any

from ...events import NS_PER_S, Event, VllmCompile, VllmConfig
from .record_kinds import OF_VLLM

CONFIG, STARTED, ANNOUNCED = "vllm_compilation_config", "vllm_piecewise_compile_start", "vllm_compile_event"
#: After this record, nothing is compiled.
EXECUTED = "vllm_execution_code"
#: Compiles whose state is held: damaged logs can have any number without an end.
MAX_COMPILES = 256
#: vLLM's numbers of its modes, which Python 3.11 and later write instead of the names.
MODES = {"0": "NONE", "1": "STOCK_TORCH_COMPILE", "2": "DYNAMO_TRACE_ONCE", "3": "VLLM_COMPILE"}
#: A call in the text of a graph: `linear: "f32[s77, 64]" = torch._C._nn.linear(...)`, `mul = x * 2`, not `x = L_x_`.
_CALL = re.compile(r'^[ \t]+\w+(?:: "[^"\n]*")? = (?![\w.]+(?:;|$))', re.MULTILINE)


class VllmRecords:
    """Decodes the records of one process."""

    def __init__(self) -> None:
        #: Compile key -> the part of the model that is compiled.
        self._parts: dict[str | None, str | None] = {}
        #: Compile key -> the piece that is compiled now.
        self._open: dict[str | None, VllmCompile] = {}
        #: (compile key, piece) -> calls in its graph.
        self._ops: dict[tuple[str | None, str], int] = {}
        self._origin: str | None = None

    def decode(
        self, name: str, text: str, compile_id: str | None, compile_key: str | None, time_ns: int
    ) -> Iterator[Event]:
        """Yield what a record gives. ValueError if its text is no JSON."""
        columns: dict[str, Any] = {"time_ns": time_ns, "compile_id": compile_id, "compile_key": compile_key}
        if name == ANNOUNCED:
            self._origin = _read_text(_parse(text), "type")
        elif name == CONFIG:
            yield from self._begin(_parse(text), columns)
        elif name == STARTED:
            yield from self.end(compile_key, time_ns)
            self._start_piece(_parse(text), columns)
        elif name == EXECUTED:
            yield from self.end(compile_key, time_ns)
        else:
            piece, row = name.removeprefix(OF_VLLM), self._open.get(compile_key)
            if row is not None and row.piece == piece:
                # The number of calls of a piece holds for its next ranges too.
                calls = self._ops[compile_key, piece] = len(_CALL.findall(text))
                self._open[compile_key] = dataclasses.replace(row, graph_ops=calls)

    def end(self, compile_key: str | None, time_ns: int) -> Iterator[Event]:
        """Yield the piece that is compiled until `time_ns`, if there is one."""
        row = self._open.pop(compile_key, None)
        if row is not None:
            yield dataclasses.replace(row, duration_s=max(0, time_ns - row.time_ns) / NS_PER_S)

    def finish(self) -> Iterator[Event]:
        """Yield the pieces whose compile did not end."""
        yield from self._open.values()
        self._open.clear()

    def _begin(self, fields: dict[str, Any], columns: dict[str, Any]) -> Iterator[Event]:
        if len(self._parts) >= MAX_COMPILES:
            yield from self.finish()
            self._parts.clear()
            self._ops.clear()
        part = self._parts[columns["compile_key"]] = _read_text(fields, "prefix")
        yield VllmConfig(
            **columns,
            model=_read_text(fields, "model"),
            part=part,
            mode=_read_name(fields, "mode", MODES),
            backend=_read_text(fields, "backend"),
            cudagraph_mode=_read_name(fields, "cudagraph_mode"),
            compile_sizes=_read_numbers(fields, "compile_sizes"),
            range_ends=_read_numbers(fields, "compile_ranges_endpoints", "compile_ranges_split_points"),
            inductor_partition=_read_flag(fields, "use_inductor_graph_partition"),
            dynamic_shapes=_read_name(fields, "dynamic_shapes_type"),
            evaluates_guards=_read_flag(fields, "dynamic_shapes_evaluate_guards"),
            origin=self._origin,
            splitting_ops=_read_list(fields, "splitting_ops"),
            custom_ops=_read_list(fields, "custom_ops"),
            enabled_passes=_read_list(fields, "enabled_passes"),
            inductor_passes=_read_list(fields, "inductor_passes"),
        )
        self._origin = None

    def _start_piece(self, fields: dict[str, Any], columns: dict[str, Any]) -> None:
        compile_key = columns["compile_key"]
        start, end = _read_number(fields, "compile_range_start"), _read_number(fields, "compile_range_end")
        position = _read_number(fields, "piecewise_index")
        # Earlier versions name pieces by their position only.
        piece = _read_text(fields, "submod_name") or (None if position is None else f"subgraph_{position}")
        # vLLM looks for the begin of a range among the sizes, so it says yes for the range 1 to 64 beside the size 1.
        is_size = fields.get("is_cudagraph_capture_size") is True and start == end
        self._open[compile_key] = VllmCompile(
            **columns,
            part=self._parts.get(compile_key),
            piece=piece,
            position=position,
            pieces=_read_number(fields, "total_piecewise_compiles"),
            range_start=start,
            range_end=end,
            is_cudagraph_size=is_size,
            graph_ops=self._ops.get((compile_key, piece or "")),
        )


def _parse(text: str) -> dict[str, Any]:
    fields = json.loads(text)
    return fields if isinstance(fields, dict) else {}


def _read_text(fields: dict[str, Any], name: str) -> str | None:
    """A text; None for none, an empty one, and what vLLM writes if it does not know."""
    value = fields.get(name)
    return value if isinstance(value, str) and value not in ("", "unknown") else None


def _read_name(fields: dict[str, Any], name: str, names: dict[str, str] | None = None) -> str | None:
    """The name of an enumeration's member: BACKED of `DynamicShapesType.BACKED`."""
    value = _read_text(fields, name)
    last = None if value is None or value == "None" else value.rpartition(".")[2]
    return last if last is None or names is None else names.get(last, last)


def _read_list(fields: dict[str, Any], name: str) -> list[str] | None:
    value = fields.get(name)
    if isinstance(value, list):
        return [str(item) for item in value]
    return [item.strip() for item in value.split(",") if item.strip()] if isinstance(value, str) else None


def _read_numbers(fields: dict[str, Any], *names: str) -> list[int] | None:
    texts = next((found for name in names if (found := _read_list(fields, name)) is not None), None)
    return None if texts is None else [int(text) for text in texts if text.isdecimal()]


def _read_number(fields: dict[str, Any], name: str) -> int | None:
    value = fields.get(name)
    return value if type(value) is int else None


def _read_flag(fields: dict[str, Any], name: str) -> bool | None:
    value = fields.get(name)
    return value if isinstance(value, bool) else None
