"""Figures of CUDA graphs: what became of each function, its calls by replay, skips by reason, captures by size."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd

from ...diagnosis import wording
from ...diagnosis.rules.cudagraph_functions import GraphFunction, group_by_function
from ...events import CudaGraphAction, columns

if TYPE_CHECKING:
    from ...session import Session

#: Action -> what it is called, and its colour.
ACTIONS = {
    "warmup": ("warm-up", "#9ecae9"),
    "record": ("captured", "#4c78a8"),
    "rerecord": ("captured again", "#f58518"),
    "skip": ("skipped", "#e45756"),
    "limit": ("given up: captured again too often", "#b82e2e"),
    "stuck": ("stuck in warm-up", "#b279a2"),
    "overwritten": ("output overwritten", "#8c564b"),
    "failed": ("failed", "#000000"),
    "user_capture": ("captured by the user", "#54a24b"),
}
CALLS = {"replays": ("replayed", "#54a24b"), "captures": ("captured", "#4c78a8"), "eager": ("no graph", "#e45756")}
#: Reasons of one figure; the most frequent are shown.
SHOWN = 25


def cudagraphs(session: Session, go: Any) -> Any:
    """What happened to each function, a bar a function, a part an action."""
    frame = _actions(session)
    figure = go.Figure(layout={"title": "CUDA graphs by function", "barmode": "stack"})
    for action, (name, color) in ACTIONS.items():
        counts = frame[frame["action"] == action].groupby("lane", sort=False).size()
        if len(counts):
            figure.add_bar(orientation="h", name=name, y=counts.index, x=counts, marker_color=color)
    figure.update_xaxes(title="times")
    return figure.update_yaxes(autorange="reversed")


def coverage(session: Session, go: Any) -> Any:
    """Of the calls of each function, the share that a graph's replay answered. Functions of which neither replays nor
    calls without a graph were counted are left out, unless they were skipped.
    """
    functions = [f for f in group_by_function(session) if f.coverage is not None]
    lanes = [_lane(f.first.function, f.first.line, f.first.mode) for f in functions]
    figure = go.Figure(layout={"title": "Calls that a replay answered", "barmode": "stack"})
    for key, (name, color) in CALLS.items():
        figure.add_bar(
            orientation="h",
            name=name,
            y=lanes,
            x=[_share(f, key) for f in functions],
            marker_color=color,
            customdata=[f"{_calls(f, key):,} calls" if f.calls else "calls not counted" for f in functions],
            hovertemplate="%{y}<br>%{customdata}, %{x:.1f} %<extra>" + name + "</extra>",
        )
    figure.update_xaxes(title="percent of the calls", range=[0, 100])
    return figure.update_yaxes(autorange="reversed")


def _calls(function: GraphFunction, key: str) -> int:
    return function.own_runs if key == "captures" else getattr(function, key) or 0


def _share(function: GraphFunction, key: str) -> float:
    """In percent; what was skipped without a count ran without a graph at all calls."""
    return 100 * _calls(function, key) / function.calls if function.calls else 100.0 * (key == "eager")


def skips(session: Session, go: Any) -> Any:
    """Why functions run without CUDA graphs, a bar a reason."""
    frame = _actions(session)
    frame = frame[frame["action"].isin(["skip", "limit"])]
    reasons = frame["reason"].map(lambda text: wording.first_line(text or "no reason was given", 80))
    counts = frame.groupby(reasons).agg(
        times=("lane", "size"), lanes=("lane", lambda lanes: ", ".join(sorted({*lanes})))
    )
    counts = counts.nlargest(SHOWN, "times")[::-1]
    figure = go.Figure(layout={"title": "Why functions run without CUDA graphs"})
    figure.add_bar(
        orientation="h",
        y=counts.index,
        x=counts["times"],
        marker_color=ACTIONS["skip"][1],
        text=counts["lanes"],
        textposition="inside",
        hovertemplate="%{y}<br>%{x}x: %{text}<extra></extra>",
    )
    return figure.update_xaxes(title="times")


def captures(session: Session, go: Any) -> Any:
    """Captures over time, a lane a size or broken invariant; x in seconds since the first."""
    frame = _actions(session)
    frame = frame[frame["action"].isin(["record", "rerecord"])]
    figure = go.Figure(layout={"title": "Captures over time, by size and by what broke"})
    begin = frame["time"].min()
    for action in ("record", "rerecord"):
        rows = frame[frame["action"] == action]
        name, color = ACTIONS[action]
        figure.add_scatter(
            mode="markers",
            name=name,
            x=(rows["time"] - begin).dt.total_seconds(),
            y=rows["lane"] + ": " + rows["mismatch"].fillna(rows["sizes"]).fillna("one size"),
            marker={"color": color, "size": 9, "symbol": "circle" if action == "record" else "triangle-up"},
            customdata=rows[["sizes", "input", "duration_ms"]].astype(object).fillna("?"),
            hovertemplate="%{y}<br>%{customdata[0]}, input %{customdata[1]}, %{customdata[2]} ms<extra></extra>",
        )
    figure.update_xaxes(title="seconds since the first capture")
    return figure.update_yaxes(autorange="reversed")


def _actions(session: Any) -> pd.DataFrame:
    names = ["time_ns", *columns(CudaGraphAction)]
    frame = pd.DataFrame([[getattr(row, n) for n in names] for row in session.rows(CudaGraphAction)], columns=names)
    lanes = [_lane(*each) for each in zip(frame["function"], frame["line"], frame["mode"], strict=True)]
    return frame.assign(lane=pd.Series(lanes, dtype="string"), time=pd.to_datetime(frame["time_ns"], utc=True))


def _lane(function: Any, line: Any, mode: Any) -> str:
    if pd.isna(function):
        return "graphs of your own"
    place = str(function) if pd.isna(line) else f"{function}:{int(line)}"
    return place if pd.isna(mode) or mode == "forward" else f"{place} {mode}"
