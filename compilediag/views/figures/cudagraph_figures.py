"""Figures of CUDA graphs: actions by function, the share of replayed calls, reasons to skip, captures over time."""

from __future__ import annotations

from collections import Counter, defaultdict
from types import ModuleType
from typing import TYPE_CHECKING

from ...diagnosis.rules.cudagraph_functions import GraphFunction, group_by_function
from ...events import CudaGraphAction, Rows
from ...formatting import format_amount, format_first_line, format_share

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

#: Action -> its name in the legend, and its color.
ACTIONS = {
    "warmup": ("warm-up", "#9ecae9"),
    "record": ("captured", "#4c78a8"),
    "rerecord": ("re-recorded", "#f58518"),
    "skip": ("skipped", "#e45756"),
    "limit": ("re-record limit reached", "#b82e2e"),
    "stuck": ("stuck in warm-up", "#b279a2"),
    "overwritten": ("output overwritten", "#8c564b"),
    "failed": ("failed", "#000000"),
    "user_capture": ("captured by the user", "#54a24b"),
}
CALLS = {"replays": ("replayed", "#54a24b"), "captures": ("captured", "#4c78a8"), "eager": ("no graph", "#e45756")}
#: The most frequent reasons that one figure shows.
SHOWN = 25


def draw_actions(data: Rows, go: ModuleType) -> Figure:
    """The actions on each function: one bar per function, one part per action."""
    rows = data.rows(CudaGraphAction)
    figure = go.Figure(layout={"title": "CUDA graphs by function", "barmode": "stack"})
    for action, (name, color) in ACTIONS.items():
        counts = Counter(_name_row_lane(row) for row in rows if row.action == action)
        if counts:
            lanes, heights = list(counts), list(counts.values())
            figure.add_bar(orientation="h", name=name, y=lanes, x=heights, marker_color=color)
    figure.update_xaxes(title="count")
    return figure.update_yaxes(autorange="reversed")


def draw_coverage(data: Rows, go: ModuleType) -> Figure:
    """The share of each function's calls that a replay answered.

    A function is left out if neither its replays nor its calls without a graph were counted, unless it was skipped.
    """
    functions = [f for f in group_by_function(data) if f.coverage is not None]
    lanes = [_name_row_lane(f.first) for f in functions]
    figure = go.Figure(layout={"title": "Calls answered by a CUDA graph replay", "barmode": "stack"})
    for key, (name, color) in CALLS.items():
        figure.add_bar(
            orientation="h",
            name=name,
            y=lanes,
            x=[_compute_percent(f, key) for f in functions],
            marker_color=color,
            customdata=[_format_calls(f, key) for f in functions],
            hovertemplate="%{y}<br>%{customdata}<extra>" + name + "</extra>",
        )
    figure.update_xaxes(title="percent of the calls", range=[0, 100])
    return figure.update_yaxes(autorange="reversed")


def _count_calls(function: GraphFunction, key: str) -> int:
    counts = {"captures": function.own_runs, "replays": function.replays, "eager": function.eager}
    return counts[key] or 0


def _format_calls(function: GraphFunction, key: str) -> str:
    if not function.calls:
        return "calls not counted"
    count = _count_calls(function, key)
    return f"{format_amount(count, 'call')}, {format_share(count / function.calls)}"


def _compute_percent(function: GraphFunction, key: str) -> float:
    """A function that was skipped without a count ran without a graph at every call."""
    return 100 * _count_calls(function, key) / function.calls if function.calls else 100.0 * (key == "eager")


def draw_skips(data: Rows, go: ModuleType) -> Figure:
    """Why functions run without CUDA graphs, one bar per reason."""
    lanes: dict[str, list[str]] = defaultdict(list)
    for row in data.rows(CudaGraphAction):
        if row.action in ("skip", "limit"):
            lanes[format_first_line(row.reason or "no reason given", 80)].append(_name_row_lane(row))
    reasons = sorted(lanes, key=lambda reason: len(lanes[reason]))[-SHOWN:]
    figure = go.Figure(layout={"title": "Why functions run without CUDA graphs"})
    figure.add_bar(
        orientation="h",
        y=reasons,
        x=[len(lanes[reason]) for reason in reasons],
        marker_color=ACTIONS["skip"][1],
        text=[", ".join(sorted({*lanes[reason]})) for reason in reasons],
        textposition="inside",
        hovertemplate="%{y}<br>%{x}x: %{text}<extra></extra>",
    )
    return figure.update_xaxes(title="count")


def draw_captures(data: Rows, go: ModuleType) -> Figure:
    """Captures over time, one lane per size or broken invariant; x is in seconds since the first capture."""
    captures = [row for row in data.rows(CudaGraphAction) if row.action in ("record", "rerecord")]
    begin_ns = min((row.time_ns for row in captures), default=0)
    figure = go.Figure(layout={"title": "CUDA graph captures, by size and broken invariant"})
    for action in ("record", "rerecord"):
        rows = [row for row in captures if row.action == action]
        name, color = ACTIONS[action]
        figure.add_scatter(
            mode="markers",
            name=name,
            x=[(row.time_ns - begin_ns) / 1e9 for row in rows],
            y=[f"{_name_row_lane(row)}: {row.mismatch or row.sizes or 'one size'}" for row in rows],
            marker={"color": color, "size": 9, "symbol": "circle" if action == "record" else "triangle-up"},
            customdata=[
                tuple("?" if v is None else v for v in (row.sizes, row.input, row.duration_ms)) for row in rows
            ],
            hovertemplate="%{y}<br>%{customdata[0]}, input %{customdata[1]}, %{customdata[2]} ms<extra></extra>",
        )
    figure.update_xaxes(title="seconds since the first capture")
    return figure.update_yaxes(autorange="reversed")


def _name_row_lane(row: CudaGraphAction) -> str:
    if row.function is None:
        return "your own graphs"
    place = row.function if row.line is None else f"{row.function}:{row.line}"
    return place if row.mode is None or row.mode == "forward" else f"{place} {row.mode}"
