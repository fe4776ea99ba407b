"""CompilationMetrics, torch's own record of one compile, as a `Compile`; its timed events, as `Phase`s.

In a log the fields have the names of the torch version that wrote them; `normalize_metrics` gives them today's names.
An instant timed event can be a `DynamicDecision`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

from ...events import Compile, DynamicDecision, Phase
from ...formatting import SEARCHED

#: Fields of CompilationMetrics by name; torch adds some with each version.
Metrics = Mapping[str, Any]

#: Exceptions by which Dynamo leaves a frame to the interpreter on purpose.
SKIPS = frozenset({"SkipFrame", "SkipCodeRecursiveException", "RestartAnalysis"})
LIMIT = re.compile(r"Dynamo (?:cache|recompile) limit exceeded.*?Limit type: (\w+)", re.DOTALL)
LIMIT_VALUE = re.compile(r"\(currently set to (\d+)\)")
#: What started a compile whose metrics lack its graph: `aot_compile` reports only its times.
AOT_COMPILE = "aot_compile"
#: Kinds of records with metrics, and whether they describe a forward.
KINDS = {
    "compilation_metrics": True,
    "compilation_metrics_runtime": True,
    "bwd_compilation_metrics": False,
    "bwd_compilation_metrics_runtime": False,
    "aot_autograd_backward_compilation_metrics": False,
}
#: Today's name, in microseconds -> the name before torch 2.6, in seconds.
SECONDS = {
    "start_time_us": "start_time",
    "duration_us": "entire_frame_compile_time_s",
    "dynamo_cumulative_compile_time_us": "entire_frame_compile_time_s",
    "aot_autograd_cumulative_compile_time_us": "backend_compile_time_s",
    "inductor_cumulative_compile_time_us": "inductor_compile_time_s",
    "inductor_code_gen_cumulative_compile_time_us": "code_gen_time_s",
}
#: Before torch 2.6 a backward had a record of its own, with its duration in other fields.
BACKWARD_SECONDS = ("elapsed_time", "inductor_compile_time_s")
WHOLE = "dynamo_cumulative_compile_time_us"
#: torch's reason for a recompile that no entry's guards explain.
UNKNOWN_REASON = "Unable to find recompilation reasons"
COMPILE_ID = re.compile(r"(?:!\d+/?)?(?:\d+/\d+)?")
#: A whole number of at most 18 digits: a step.
_NUMBER = re.compile(r"(?<![\w.])\d{1,18}(?![\w.])")
#: Longer texts (the configurations) are stored on their own: they hardly ever differ between two compiles.
LONG = 1000
#: Characters of the other fields of a record; one that is cut is damaged.
MAX_FIELDS = 16 << 20


def make_compile(
    metrics: Metrics,
    known: Mapping[str, Any] = MappingProxyType({}),
    compile_key: str | None = None,
    thread: int | None = None,
) -> Compile | None:
    """Make the compile that `metrics` describe; None if they describe run time.

    `known` has columns that the metrics lack: backend, attempt, stack, region, what torch did about a failure, and the
    function of a backward. All `_s` columns are torch's own times, which include each other: dynamo_s (the whole frame)
    > aot_s > inductor_s > codegen_s.
    """
    if metrics.get("is_runtime"):
        return None
    start_us, end_us = metrics.get("start_time_us"), metrics.get("end_time_us")
    duration_s = _read_seconds(metrics, "duration_us")
    if start_us is not None and end_us is not None and end_us >= start_us:
        duration_s = (end_us - start_us) / 1e6
    forward = metrics.get("is_forward") is not False
    reason = metrics.get("fail_reason") or ""
    limit = LIMIT.search(reason[:SEARCHED])
    limit_value = LIMIT_VALUE.search(reason) if limit else None
    trigger = "dynamo" if forward else "lazy_backward"
    if known.get("trigger") == AOT_COMPILE:
        trigger = AOT_COMPILE
    elif (metrics.get("compile_id") or "").startswith("!"):
        trigger = "compiled_autograd"
    return Compile(
        time_ns=(start_us or end_us or 0) * 1000,
        duration_s=duration_s,
        compile_id=metrics.get("compile_id") or known.get("compile_id"),
        compile_key=compile_key,
        function=metrics.get("co_name") or known.get("function"),
        file=metrics.get("co_filename") or known.get("file"),
        line=metrics.get("co_firstlineno") or known.get("line"),
        trigger=trigger,
        is_recompile=metrics.get("recompile_reason") is not None if forward else None,
        outcome=_find_outcome(metrics, limit is not None, trigger == AOT_COMPILE),
        dynamo_s=_read_seconds(metrics, "dynamo_cumulative_compile_time_us"),
        aot_s=_read_seconds(metrics, "aot_autograd_cumulative_compile_time_us"),
        inductor_s=_read_seconds(metrics, "inductor_cumulative_compile_time_us"),
        codegen_s=_read_seconds(metrics, "inductor_code_gen_cumulative_compile_time_us"),
        triton_s=_read_seconds(metrics, "triton_compile_time_us"),
        guard_count=metrics.get("guard_count"),
        guard_latency_us=metrics.get("guard_latency_us"),
        guard_check_us=known.get("guard_check_us") if forward else None,
        graph_ops=known.get("graph_ops", metrics.get("graph_op_count")),
        graph_nodes=metrics.get("graph_node_count"),
        graph_inputs=metrics.get("graph_input_count"),
        cache_size=metrics.get("accumulated_cache_size"),
        fail_type=metrics.get("fail_type"),
        fail_reason=metrics.get("fail_reason"),
        on_failure=known.get("on_failure"),
        limit=known.get("limit") or (limit[1] if limit else None),
        limit_value=known.get("limit_value") or (int(limit_value[1]) if limit_value else None),
        limit_argument=known.get("limit_argument"),
        region=known.get("region"),
        restart_reasons=sorted(metrics.get("restart_reasons") or ()) or None,
        attempt=known.get("attempt") if forward else None,
        backend=known.get("backend"),
        user_file=metrics.get("fail_user_frame_filename"),
        user_line=metrics.get("fail_user_frame_lineno"),
        stack=known.get("stack") if forward else None,
        blocks=known.get("blocks") if forward else None,
        loop=known.get("loop") if forward else None,
        step=_read_step(metrics),
        thread=thread,
    )


def read_static_sources(metrics: Metrics) -> str | None:
    """Return torch 2.15's setting of what stays static, `L['x'],L['y']:0`, if it was set at this compile."""
    config = metrics.get("compiler_config") or ""
    if '"static_sources"' not in config or '"static_sources": ""' in config:
        return None
    found = json.loads(config).get("static_sources")
    return found if isinstance(found, str) else None


def _read_step(metrics: Metrics) -> int | None:
    """The step in what `register_hook_for_recompile_user_context` added to a compile: `Iteration: 412`. None for texts
    without a number, and with several.
    """
    texts = metrics.get("recompile_user_contexts") or ()
    steps = {int(numbers[0]) for text in texts if len(numbers := _NUMBER.findall(str(text)[:SEARCHED])) == 1}
    return steps.pop() if len(steps) == 1 else None


def _read_seconds(metrics: Metrics, name: str) -> float | None:
    value = metrics.get(name)
    # torch measures with the wall clock, which may have been set back meanwhile.
    return None if value is None or value < 0 else value / 1e6


def _find_outcome(metrics: Metrics, is_over_limit: bool, is_ahead: bool) -> str:
    fail_type = metrics.get("fail_type")
    if fail_type is not None:
        return "skipped" if fail_type in SKIPS or is_over_limit else "failed"
    if not is_ahead and metrics.get("is_forward") is not False and not metrics.get("graph_op_count"):
        return "empty"
    return "ok"


# In logs


def normalize_metrics(kind: str, logged: Metrics, compile_id: str | None, time_ns: int) -> dict[str, Any]:
    """Return the fields of one record of metrics by today's names. `compile_id` and `time_ns` are the record's own."""
    metrics = dict(logged)
    if not isinstance(metrics.get("compile_id"), str) or not COMPILE_ID.fullmatch(metrics["compile_id"]):
        metrics["compile_id"] = compile_id
    metrics.setdefault("is_runtime", kind.endswith("_runtime"))
    if not KINDS[kind]:
        metrics["is_forward"] = False
    for name, before in SECONDS.items():
        if metrics.get(name) is None and metrics.get(before) is not None:
            metrics[name] = round(metrics[before] * 1e6)
    if metrics.get("duration_us") is None and metrics.get("end_time_us") is None:
        metrics["duration_us"] = metrics.get(WHOLE)
        seconds = next((metrics[n] for n in BACKWARD_SECONDS if metrics.get(n) is not None), None)
        if seconds is not None and not KINDS[kind]:
            metrics["duration_us"] = round(seconds * 1e6)
    if metrics.get("start_time_us") is None:
        metrics["start_time_us"] = time_ns // 1000 - (metrics.get("duration_us") or 0)
    if "recompile_reason" not in metrics and KINDS[kind]:
        # The second number of an id counts the compiles of a frame: after the first one the frame has entries.
        again = compile_id is not None and not compile_id.endswith("/0")
        metrics["recompile_reason"] = UNKNOWN_REASON if again else None
    return metrics


def split_texts(kind: str, logged: Metrics) -> Iterator[tuple[str, str]]:
    """Yield (name, text) of a record: JSON of its fields, and each long text on its own. `join_texts` joins them."""
    long = {name: value for name, value in logged.items() if isinstance(value, str) and len(value) > LONG}
    yield kind, json.dumps({name: value for name, value in logged.items() if name not in long})
    for name, value in long.items():
        yield f"{kind}.{name}", value


def join_texts(parts: Mapping[str, str]) -> dict[str, Any]:
    """Return all fields of a compile's metrics from the texts of `split_texts`; empty if there are none. ValueError,
    TypeError or RecursionError if one of them is something else.
    """
    fields: dict[str, Any] = {}
    for name, text in parts.items():
        kind, _, field = name.partition(".")
        if kind in KINDS:
            fields.update({field: text} if field else json.loads(text[:MAX_FIELDS]))
    return fields


#: Shorter phases are dropped: in `full` those of passes over a graph, of which there are dozens; in `lean` all.
FLOOR_NS = 1_000_000
PASS_PREFIX = "pass."
#: torch numbers the attempts at a frame in the names of their phases.
ATTEMPT_PREFIX = "compile_attempt_"
#: Name of the timed event around a whole compile; it comes before all other records of an attempt.
WHOLE_COMPILE = "dynamo"
#: Name of the phase in which torch builds and loads a library with the vector instructions that the CPU may have. torch
#: does not time it; a watch does. It has no row in TORCH_TRACE logs.
CPU_CHECK = "VecISA.check_build"
#: Phases that may be open at once: a log may never report the end of one.
MAX_OPEN = 10_000
#: Name of the instant event of automatic dynamic shapes.
AUTOMATIC_DYNAMIC = "automatic_dynamic"

_OpenPhase = tuple[str, int, str | None, str | None]


def is_phase_kept(name: str, length_ns: int, every: bool) -> bool:
    """Return whether a phase becomes a row. `every`: short ones too, except those of passes."""
    return length_ns >= FLOOR_NS or (every and not name.startswith(PASS_PREFIX))


def clean_compile_id(compile_id: str | None) -> str | None:
    """Return None for "None": torch announces what it times outside of any compile with that id."""
    return None if compile_id == "None" else compile_id


def make_phase(
    name: str,
    parent: str | None,
    depth: int,
    start_ns: int,
    end_ns: int,
    compile_id: str | None,
    compile_key: str | None = None,
) -> Phase:
    """Make one phase. `compile_id` is the one that torch announces."""
    return Phase(
        time_ns=start_ns,
        duration_s=(end_ns - start_ns) / 1e9,
        compile_id=clean_compile_id(compile_id),
        compile_key=compile_key,
        name=name,
        parent=parent,
        depth=depth,
    )


class OpenPhases:
    """The phases of a log that have begun and not ended. `compile_id` is the one that torch announces."""

    def __init__(self) -> None:
        #: (name, time in ns, compile id, compile key), in the order in which they began: first those within compiles,
        #: then those outside, which torch times in a thread of its own.
        self._open: tuple[list[_OpenPhase], list[_OpenPhase]] = ([], [])

    def begin(self, name: str, time_ns: int, compile_id: str | None, compile_key: str | None) -> None:
        """Note the begin of a phase."""
        opened = self._open[compile_id == "None"]
        if len(opened) < MAX_OPEN:
            opened.append((name, time_ns, compile_id, compile_key))

    def end(self, name: str, end_ns: int, compile_id: str | None) -> Phase | None:
        """Return the phase that ends: the last one with this name and compile, as threads may write at once."""
        opened = self._open[compile_id == "None"]
        at = len(opened) - 1
        while at >= 0 and (opened[at][0] != name or opened[at][2] != compile_id):
            at -= 1
        if at < 0:
            return None
        _, start_ns, _, compile_key = opened.pop(at)
        if not is_phase_kept(name, end_ns - start_ns, every=True):
            return None
        parent = opened[at - 1][0] if at else None
        return make_phase(name, parent, at, start_ns, end_ns, compile_id, compile_key)


def make_dynamic_decision(
    metadata: Mapping[str, object], time_ns: int, compile_key: str | None = None
) -> DynamicDecision:
    """Make the decision that an instant event of automatic dynamic shapes describes."""

    def text(name: str) -> str | None:
        value = metadata.get(name)
        return None if value is None else str(value)

    return DynamicDecision(
        time_ns=time_ns,
        compile_id=text("compile_id"),
        compile_key=compile_key,
        source=text("name"),
        dim=text("dim_changed"),
        reason=text("reason"),
        cached=text("cached"),
        new=text("new"),
    )
