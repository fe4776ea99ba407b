"""Find functions that run without CUDA graphs, are captured again and again, or whose outputs are overwritten."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, TypeVar

from ...events import CudaGraphAction, Rows
from ...formatting import (
    format_count,
    format_first_line,
    format_function,
    format_line,
    format_names,
    format_seconds,
    format_times,
)
from ..change import CodeChange
from ..evidence import find_first, get_ids, group_by, sum_seconds
from ..finding import Finding, get_severity
from .cudagraph_advice import FAILED, GRADIENT, KEPT, OVERWRITTEN, PATHS, SIZES, STUCK, advise_skip, explain_mismatch

K = TypeVar("K", bound=Hashable)
Actions = list[CudaGraphAction]

#: A function may be captured for so many sizes before that is reported; from MANY_SIZES on the severity is not low.
FEW_SIZES, MANY_SIZES = 3, 8
#: A function may be captured at so many places in the tree of graphs before that is reported.
FEW_PATHS = 4
#: torch's settings of 2.15; their names are in the reasons of rows that they caused.
_SIZE_LIMIT = "cudagraph_dynamic_shape_rerecord_limit"
_MANAGED_LIMIT = "cudagraph_managed_input_rerecord_limit"
#: So many captures again are usual: a first step differs from the next ones.
USUAL_AGAIN = 1


def find_cudagraph_problems(data: Rows) -> list[Finding]:
    """Problems of the graphs that torch.compile captures; the user's own graphs are only in the table."""
    rows = data.rows(CudaGraphAction)
    again = _group(rows, "rerecord", lambda row: (*_get_function(row), row.mismatch, row.input))
    demoted = [row for row in rows if row.action == "demoted"]
    abandoned = {_get_function(row) for row in rows if row.action == "limit"}
    return [
        *map(_report_skip, _group(rows, "skip", lambda row: (*_get_function(row), row.reason, *_get_user_line(row)))),
        *(_report_again(g, demoted) for g in again if len(g) > USUAL_AGAIN and _get_function(g[0]) not in abandoned),
        *map(_report_sizes, _group_by_size(rows)),
        *map(_report_paths, _group_by_path(rows)),
        *map(_report_limit, _group(rows, "limit", _get_function)),
        *map(_report_stuck, _group(rows, "stuck", _get_function)),
        *map(_report_invalidated, _group_invalidated(rows)),
        *_report_overwritten(rows),
        *map(_report_failed, _group(rows, "failed", lambda row: (*_get_function(row), row.reason))),
    ]


def _get_function(row: CudaGraphAction) -> tuple[str | None, str | None, int | None, str | None]:
    return row.function, row.file, row.line, row.mode


def _get_user_line(row: CudaGraphAction) -> tuple[str | None, int | None]:
    return row.user_file, row.user_line


def _group(rows: Iterable[CudaGraphAction], action: str, key: Callable[[CudaGraphAction], K]) -> list[Actions]:
    return list(group_by((row for row in rows if row.action == action), key).values())


def _make_finding(rule: str, severity: str, what: str, rows: Actions, suggestion: str, **more: Any) -> Finding:
    """A finding on a function; `what` is what happened to it, after its name."""
    function, file, line = (find_first(getattr(row, name) for row in rows) for name in ("function", "file", "line"))
    backward = ", backward," if find_first(row.mode for row in rows) == "backward" else ""
    fields: dict[str, Any] = {
        "seconds_lost": 0.0,
        "evidence": get_ids(rows),
        "count": len(rows),
        "user_file": find_first(row.user_file for row in rows),
        "user_line": find_first(row.user_line for row in rows),
        "user_code": find_first(row.user_code for row in rows),
        **more,
    }
    return Finding(
        rule=rule,
        severity=severity,
        title=f"{format_function(function, file, line)}{backward} {what}",
        suggestion=suggestion,
        changes=(CodeChange(text=suggestion),),
        function=function,
        file=file,
        line=line,
        **fields,
    )


def _sum_seconds(rows: Actions) -> float:
    return sum_seconds(row.duration_ms for row in rows) / 1e3


def _report_skip(rows: Actions) -> Finding:
    reason = find_first(row.reason for row in rows)
    text = format_first_line(reason or "no reason given")
    suggestion = advise_skip(reason) or "PyTorch's page on CUDAGraph Trees lists what can't be captured."
    return _make_finding(
        "cudagraph_skip", "medium", f"runs without CUDA graphs: {text}", rows, suggestion, details=(text,)
    )


def _report_again(rows: Actions, demoted: Actions) -> Finding:
    lost = _sum_seconds(rows)
    why, advice = _explain_again(rows)
    which = find_first(row.input for row in rows)
    named = f" ({format_line(which, 80)})" if which else ""
    spent = f", {format_seconds(lost)}" if lost else ""
    is_copied = any(_get_function(row) == _get_function(rows[0]) and row.input == which for row in demoted)
    copied = ". torch now copies it before each replay" if is_copied else ""
    return _make_finding(
        "cudagraph_rerecord",
        get_severity(lost, len(rows)),
        f"was captured again {format_times(len(rows))}{spent}: {why}{named}{copied}",
        rows,
        advice or "torch gave no further reason.",
        seconds_lost=lost,
        details=tuple(dict.fromkeys(row.input for row in rows if row.input))[:64],
    )


def _explain_again(rows: Actions) -> tuple[str, str]:
    """Why torch captured it again, and what to change; "" if there is no advice."""
    why, advice = explain_mismatch(find_first(row.mismatch for row in rows))
    return why or format_first_line(find_first(row.reason for row in rows) or "the reason is not known"), advice


def _group_by_size(rows: Iterable[CudaGraphAction]) -> list[Actions]:
    """The captures of functions that were captured for more than a few sizes."""
    groups = _group((row for row in rows if row.sizes is not None), "record", _get_function)
    return [group for group in groups if len({row.sizes for row in group}) > FEW_SIZES]


def _report_sizes(rows: Actions) -> Finding:
    sizes = list(dict.fromkeys(row.sizes for row in rows if row.sizes is not None))
    lost = _sum_seconds(rows[1:])
    return _make_finding(
        "cudagraph_sizes",
        "medium" if len(sizes) >= MANY_SIZES else get_severity(lost, 1, "medium"),
        f"was captured for {len(sizes)} sizes, {format_seconds(lost)} after the first: {format_names(sizes)}",
        rows,
        SIZES,
        seconds_lost=lost,
        count=len(sizes),
        details=tuple(format_line(text, 80) for text in sizes[:64]),
    )


def _group_by_path(rows: Iterable[CudaGraphAction]) -> list[Actions]:
    """The captures of one graph at more than a few places: after other graphs each time."""
    groups = _group(rows, "record", lambda row: (row.pid, row.function_id, *_get_function(row), row.sizes))
    return [group for group in groups if len({row.parent_id for row in group}) > FEW_PATHS]


def _report_paths(rows: Actions) -> Finding:
    lost = _sum_seconds(rows[1:])
    what = f"was captured {format_times(len(rows))} without a change of its inputs, each time after other graphs"
    return _make_finding(
        "cudagraph_paths", get_severity(lost, len(rows), "medium"), what, rows, PATHS, seconds_lost=lost
    )


def _report_limit(rows: Actions) -> Finding:
    why, advice = _explain_again(rows)
    if _SIZE_LIMIT in (rows[0].reason or ""):
        what = f"runs without CUDA graphs for new sizes: {format_first_line(rows[0].reason or '')}"
        return _make_finding("cudagraph_limit", "medium", what, rows, SIZES)
    limit = _MANAGED_LIMIT if _MANAGED_LIMIT in (rows[-1].reason or "") else "cudagraph_unexpected_rerecord_limit"
    raising = f"If you need all these captures, raise torch._inductor.config.triton.{limit}."
    what = f"was captured again too often and now runs without CUDA graphs: {why}"
    return _make_finding("cudagraph_limit", "high", what, rows, f"{advice} {raising}".strip())


def _report_stuck(rows: Actions) -> Finding:
    count = max(row.count or 1 for row in rows)
    reason = find_first(row.reason for row in rows)
    what = f"ran in its warm-up {format_times(count)} and was never captured"
    text = f"{what}: {format_first_line(reason)}" if reason else what
    return _make_finding("cudagraph_stuck", "medium", text, rows, STUCK, count=count)


def _group_invalidated(rows: Sequence[CudaGraphAction]) -> list[Actions]:
    """Outputs that were alive when a later run took their memory; what was used after that is reported as such."""
    used = {(row.user_file, row.user_line) for row in rows if row.action == "overwritten"}
    groups = _group(rows, "invalidated", lambda row: (*_get_function(row), *_get_user_line(row)))
    return [group for group in groups if _get_user_line(group[0]) not in used]


def _report_invalidated(rows: Actions) -> Finding:
    count = sum(row.count or 1 for row in rows)
    kept = "an output that was" if count == 1 else f"{format_count(count)} outputs that were"
    what = f"returned {kept} still alive when a later run took the memory: using it after that raises RuntimeError"
    is_backward = find_first(row.mode for row in rows) == "backward"
    suggestion = GRADIENT if is_backward else f"{KEPT} {OVERWRITTEN}"
    return _make_finding("cudagraph_invalidated", "low", what, rows, suggestion, count=count)


def _report_overwritten(rows: Sequence[CudaGraphAction]) -> list[Finding]:
    """Uses of outputs whose memory a later run took. Before torch 2.13 its message does not name a gradient as such."""
    groups = _group(rows, "overwritten", lambda row: (*_get_function(row), *_get_user_line(row)))
    gradients = {_get_user_line(row) for row in rows if row.action == "invalidated" and row.mode == "backward"}
    others = {_get_user_line(row) for row in rows if row.action == "invalidated" and row.mode != "backward"}
    return [_report_use(group, _get_user_line(group[0]) in gradients - others) for group in groups]


def _report_use(rows: Actions, is_gradient: bool) -> Finding:
    is_gradient = is_gradient or "gradient" in (find_first(row.reason for row in rows) or "")
    what = "returned a gradient" if is_gradient else "returned a tensor"
    return _make_finding(
        "cudagraph_overwritten",
        "high",
        f"{what} that a later run overwrote; it was used {format_times(len(rows))} after that",
        rows,
        GRADIENT if is_gradient else OVERWRITTEN,
    )


def _report_failed(rows: Actions) -> Finding:
    reason = format_first_line(find_first(row.reason for row in rows) or "no reason given")
    what = f"could not be captured {format_times(len(rows))}: {reason}"
    return _make_finding("cudagraph_failed", "high", what, rows, FAILED)
