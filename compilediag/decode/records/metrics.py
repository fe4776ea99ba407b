"""CompilationMetrics as a log has them: fields by the names that torch uses now, whatever version wrote them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

#: Records of metrics, and whether they are of a forward.
KINDS = {
    "compilation_metrics": True,
    "compilation_metrics_runtime": True,
    "bwd_compilation_metrics": False,
    "bwd_compilation_metrics_runtime": False,
    "aot_autograd_backward_compilation_metrics": False,
}
#: Microseconds by the names of now, seconds by those before torch 2.6.
SECONDS = {
    "start_time_us": "start_time",
    "duration_us": "entire_frame_compile_time_s",
    "dynamo_cumulative_compile_time_us": "entire_frame_compile_time_s",
    "aot_autograd_cumulative_compile_time_us": "backend_compile_time_s",
    "inductor_cumulative_compile_time_us": "inductor_compile_time_s",
    "inductor_code_gen_cumulative_compile_time_us": "code_gen_time_s",
}
#: Before torch 2.6 a backward had a record of its own that says how long it took, but not in these fields.
BACKWARD_SECONDS = ("elapsed_time", "inductor_compile_time_s")
WHOLE = "dynamo_cumulative_compile_time_us"
#: What torch says where no entry's guards tell why it compiles again.
UNKNOWN_REASON = "Unable to find recompilation reasons"
COMPILE_ID = re.compile(r"(?:!\d+/?)?(?:\d+/\d+)?")
#: Longer texts (the configurations) are kept apart: they hardly ever differ between two compiles.
LONG = 1000


def of_now(kind: str, told: Mapping[str, Any], compile_id: str | None, time_ns: int) -> dict[str, Any]:
    """The fields of one record of metrics. `compile_id` and `time_ns` are the record's own."""
    metrics = dict(told)
    if not isinstance(metrics.get("compile_id"), str) or not COMPILE_ID.fullmatch(metrics["compile_id"]):
        metrics["compile_id"] = compile_id
    metrics.setdefault("is_runtime", kind.endswith("_runtime"))
    if not KINDS[kind]:
        metrics["is_forward"] = False
    for name, before in SECONDS.items():
        if metrics.get(name) is None and metrics.get(before) is not None:
            metrics[name] = round(metrics[before] * 1e6)
    if metrics.get("duration_us") is None and metrics.get("end_time_us") is None:
        taken_s = next((metrics[n] for n in BACKWARD_SECONDS if metrics.get(n) is not None), None)
        forward = KINDS[kind] or taken_s is None
        metrics["duration_us"] = metrics.get(WHOLE) if forward else round(taken_s * 1e6)
    if metrics.get("start_time_us") is None:
        metrics["start_time_us"] = time_ns // 1000 - (metrics.get("duration_us") or 0)
    if "recompile_reason" not in metrics and KINDS[kind]:
        # Ids count on a frame that has entries already.
        again = compile_id is not None and not compile_id.endswith("/0")
        metrics["recompile_reason"] = UNKNOWN_REASON if again else None
    return metrics


def texts(kind: str, told: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """(name, text) of the record: JSON of its fields, and each long text on its own. `join` puts them together."""
    long = {name: value for name, value in told.items() if isinstance(value, str) and len(value) > LONG}
    yield kind, json.dumps({name: value for name, value in told.items() if name not in long})
    for name, value in long.items():
        yield f"{kind}.{name}", value


def join(parts: Mapping[str, str]) -> dict[str, Any]:
    """All fields of a compile's metrics, from the texts of `texts` by name; empty if there are none."""
    fields: dict[str, Any] = {}
    for name, text in parts.items():
        kind, _, field = name.partition(".")
        if kind in KINDS:
            fields.update({field: text} if field else json.loads(text))
    return fields
