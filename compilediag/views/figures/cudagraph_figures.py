"""Figures of CUDA graphs: actions by function, the share of replayed calls, reasons to skip, captures over time."""

from __future__ import annotations

from collections import Counter, defaultdict
from types import ModuleType
from typing import TYPE_CHECKING

from ...diagnosis.rules.cudagraph_functions import GraphFunction, group_by_function
from ...events import CudaGraphAction, Rows
from ...formatting import format_amount, format_first_line, format_seconds, format_share
from .figure_style import (
    BLUE,
    BROWN,
    GREEN,
    ORANGE,
    PURPLE,
    RED,
    SKY,
    TEAL,
    VIOLET,
    YELLOW,
    escape_label,
    make_count_axis,
    name_lane,
    set_height,
    sum_stacks,
)

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

#: Action -> its name in the legend, and its color.
ACTIONS = {
    "warmup": ("warm-up", SKY),
    "record": ("captured", BLUE),
    "rerecord": ("re-recorded", ORANGE),
    "skip": ("skipped", RED),
    "limit": ("re-record limit reached", YELLOW),
    "demoted": ("input copied from now on", TEAL),
    "stuck": ("stuck in warm-up", PURPLE),
    "overwritten": ("output overwritten", BROWN),
    "failed": ("failed", VIOLET),
    "user_capture": ("captured by the user", GREEN),
}
CALLS = {"replays": ("replayed", GREEN), "captures": ("captured", BLUE), "eager": ("no graph", RED)}
#: torch's name of a violated invariant -> what happened.
INVARIANTS = {
    "CudagraphManagedIdxMismatch": "an output of another graph is at a new address",
    "StaticInputIdxMismatch": "a static input is at a new address",
    "ExpectedDeadIndicesBeforeGraphMismatch": "an output of an earlier run is still used",
}
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
    set_height(figure, len({lane for bar in figure.data for lane in bar.y}))
    axis = make_count_axis(sum_stacks((bar.y, bar.x) for bar in figure.data))
    figure.update_xaxes(title="actions", **axis)
    return figure.update_yaxes(autorange="reversed")


def draw_coverage(data: Rows, go: ModuleType) -> Figure:
    """The share of each function's calls that a replay answered.

    A function is left out if neither its replays nor its calls without a graph were counted, unless it was skipped.
    """
    functions = [f for f in group_by_function(data) if f.coverage is not None]
    lanes = [_name_row_lane(f.first) for f in functions]
    figure = go.Figure(layout={"title": "Calls answered by a CUDA graph replay", "barmode": "stack"})
    set_height(figure, len(lanes))
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
    figure.update_xaxes(title="share of the calls", range=[0, 100], ticksuffix=" %")
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
    set_height(figure, len(reasons))
    figure.add_bar(
        orientation="h",
        y=[escape_label(reason) for reason in reasons],
        x=[len(lanes[reason]) for reason in reasons],
        marker_color=ACTIONS["skip"][1],
        text=[", ".join(sorted({*lanes[reason]})) for reason in reasons],
        textposition="inside",
        hovertemplate="%{y}<br>%{x}x: %{text}<extra></extra>",
    )
    return figure.update_xaxes(title="skips", **make_count_axis(map(len, lanes.values())))


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
            y=[_name_capture(row) for row in rows],
            marker={"color": color, "size": 9, "symbol": "circle" if action == "record" else "triangle-up"},
            customdata=[_describe_capture(row) for row in rows],
            hovertemplate="%{y}<br>%{customdata}<extra></extra>",
        )
    set_height(figure, len({_name_capture(row) for row in captures}))
    figure.update_xaxes(title="seconds since the first capture")
    return figure.update_yaxes(autorange="reversed")


def _name_capture(row: CudaGraphAction) -> str:
    invariant = None if row.mismatch is None else INVARIANTS.get(row.mismatch, "an invariant was violated")
    return f"{_name_row_lane(row)}: {invariant or row.sizes or 'one size'}"


def _describe_capture(row: CudaGraphAction) -> str:
    """What is known of a capture: sizes, the input that changed, how long it took."""
    duration = None if row.duration_ms is None else format_seconds(row.duration_ms / 1e3)
    parts = (row.sizes, f"input {row.input}" if row.input else None, duration)
    return escape_label(", ".join(filter(None, parts)))


def _name_row_lane(row: CudaGraphAction) -> str:
    if row.function is None:
        return "your own graphs"
    place = name_lane(row.function, row.line)
    return place if row.mode is None or row.mode == "forward" else f"{place} {row.mode}"
