"""CompilationMetrics, torch's own account of one compile, as a `Compile`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from ...events import Compile

#: Exceptions by which dynamo leaves a frame to the interpreter on purpose.
SKIPS = frozenset({"SkipFrame", "SkipCodeRecursiveException", "RestartAnalysis"})
LIMIT = re.compile(r"Dynamo (?:cache|recompile) limit exceeded.*?Limit type: (\w+)", re.DOTALL)


def compile_event(metrics: Mapping[str, Any], known: Mapping[str, Any] = MappingProxyType({})) -> Compile | None:
    """The compile that `metrics` (fields of CompilationMetrics) tells of; None if it is of run time.

    `known` are columns that the metrics don't have: backend, attempt, of a backward also the function. All
    `_s` columns are torch's own times, which hold each other: dynamo_s (the whole frame) > aot_s > inductor_s >
    codegen_s.
    """
    if metrics.get("is_runtime"):
        return None
    start_us, end_us = metrics.get("start_time_us"), metrics.get("end_time_us")
    forward = metrics.get("is_forward") is not False
    return Compile(
        time_ns=(start_us or end_us or 0) * 1000,
        duration_s=_duration(metrics, start_us, end_us),
        compile_id=metrics.get("compile_id"),
        function=metrics.get("co_name") or known.get("function"),
        file=metrics.get("co_filename") or known.get("file"),
        line=metrics.get("co_firstlineno") or known.get("line"),
        trigger=_trigger(metrics.get("compile_id"), forward),
        is_recompile=metrics.get("recompile_reason") is not None if forward else None,
        outcome=_outcome(metrics),
        dynamo_s=_seconds(metrics, "dynamo_cumulative_compile_time_us"),
        aot_s=_seconds(metrics, "aot_autograd_cumulative_compile_time_us"),
        inductor_s=_seconds(metrics, "inductor_cumulative_compile_time_us"),
        codegen_s=_seconds(metrics, "inductor_code_gen_cumulative_compile_time_us"),
        triton_s=_seconds(metrics, "triton_compile_time_us"),
        guard_count=metrics.get("guard_count"),
        guard_latency_us=metrics.get("guard_latency_us"),
        graph_ops=metrics.get("graph_op_count"),
        graph_nodes=metrics.get("graph_node_count"),
        graph_inputs=metrics.get("graph_input_count"),
        cache_size=metrics.get("accumulated_cache_size"),
        fail_type=metrics.get("fail_type"),
        fail_reason=metrics.get("fail_reason"),
        limit=_limit(metrics),
        restart_reasons=sorted(metrics.get("restart_reasons") or ()) or None,
        attempt=known.get("attempt") if forward else None,
        backend=known.get("backend"),
        user_file=metrics.get("fail_user_frame_filename"),
        user_line=metrics.get("fail_user_frame_lineno"),
        stack=known.get("stack") if forward else None,
    )


def _seconds(metrics: Mapping[str, Any], name: str) -> float | None:
    value = metrics.get(name)
    return None if value is None else value / 1e6


def _duration(metrics: Mapping[str, Any], start_us: int | None, end_us: int | None) -> float | None:
    if start_us is None or end_us is None:
        return _seconds(metrics, "duration_us")
    return (end_us - start_us) / 1e6


def _trigger(compile_id: str | None, forward: bool) -> str:
    if compile_id is not None and compile_id.startswith("!"):
        return "compiled_autograd"
    return "dynamo" if forward else "lazy_backward"


def _limit(metrics: Mapping[str, Any]) -> str | None:
    found = LIMIT.search(metrics.get("fail_reason") or "")
    return found[1] if found else None


def _outcome(metrics: Mapping[str, Any]) -> str:
    fail_type = metrics.get("fail_type")
    if fail_type is not None:
        return "skipped" if fail_type in SKIPS or _limit(metrics) else "failed"
    if metrics.get("is_forward") is not False and not metrics.get("graph_op_count"):
        return "empty"
    return "ok"
