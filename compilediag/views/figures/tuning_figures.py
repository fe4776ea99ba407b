"""Figures of autotuning: choices by time, margins, and what tuning cost against what it saves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd

from ...diagnosis import wording
from ...diagnosis.rules.autotune_runs import (
    TuningRun,
    find_tuning_runs,
    group_by_run,
    make_runs_frame,
    sort_final_times,
    summarize_run,
)
from ...events import AutotuneChoice

if TYPE_CHECKING:
    from ...session import Session

#: The colour of a kind of choice, as on the page.
KINDS = {"extern": "#4c78a8", "triton": "#54a24b", "cpp": "#2c9c94", "cutlass": "#7b61c9"}
OTHER = "#9d9da1"
COLORS = {"next": "#9ecae9", "extern": KINDS["extern"], "pays": "#54a24b", "never": "#e45756"}
#: What a choice is in the figure of choices.
CHOICE = ["lane", "kind", "ratio", "choice", "ms", "parameters"]
#: Runs of one figure; the dearest are shown.
SHOWN = 30
#: Calls after which a tuning pays, drawn as lines.
CALLS = (1_000, 1_000_000)


def autotune(session: Session, go: Any) -> Any:
    """Each choice of each run by its time, as a multiple of the winner's; a lane a run."""
    found = {run: rows for rows in group_by_run(session) if (run := summarize_run(rows)).winner_ms}
    runs = _dearest(list(found))
    figure = go.Figure(layout={"title": "Choices by time: how much longer than the winner"})
    choices = pd.DataFrame([choice for run in runs for choice in _choices(run, found[run])], columns=CHOICE)
    for kind, rows in choices.groupby("kind", sort=False):
        figure.add_scatter(
            mode="markers",
            name=str(kind),
            x=rows["ratio"],
            y=rows["lane"],
            marker={"color": KINDS.get(str(kind), OTHER), "size": 9, "opacity": 0.65},
            customdata=rows[["choice", "ms", "parameters"]],
            hovertemplate="%{y}<br>%{customdata[0]}: %{customdata[1]:.4g} ms, %{x:.3f} of the winner"
            "<br>%{customdata[2]}<extra></extra>",
        )
    figure.update_xaxes(title="time of one call / time of the winner", type="log")
    return figure.update_yaxes(categoryorder="array", categoryarray=[_lane(run) for run in runs][::-1])


def _choices(run: TuningRun, rows: list[AutotuneChoice]) -> list[tuple[Any, ...]]:
    """The cells of `CHOICE` of each choice of a run that has a time."""
    return [
        (
            _lane(run),
            row.choice_kind or "other",
            (row.time_ms or 0.0) / (run.winner_ms or 1.0),
            row.choice,
            (row.time_ms or 0.0),
            _said(row),
        )
        for row in sort_final_times(rows)
    ]


def _said(row: AutotuneChoice) -> str:
    return ", ".join(f"{name}={value}" for name, value in (row.parameters or {}).items())


def margins(session: Session, go: Any) -> Any:
    """How much longer than the winner the next choice and the extern kernel take, in percent; a pair of bars a run."""
    runs = [run for run in _dearest(find_tuning_runs(session)) if run.margin_next is not None]
    figure = go.Figure(layout={"title": "The winner's margin", "barmode": "group"})
    lanes = [_lane(run) for run in runs][::-1]
    for name, key in (("the next choice takes longer by", "next"), ("the extern kernel takes longer by", "extern")):
        values = [getattr(run, f"margin_{key}") for run in runs][::-1]
        figure.add_bar(
            orientation="h",
            name=name,
            y=lanes,
            x=[None if value is None else 100 * value for value in values],
            marker_color=COLORS[key],
            customdata=[run.winner for run in runs][::-1],
            hovertemplate="%{y}<br>winner: %{customdata}<br>%{x:.1f} %<extra>" + name + "</extra>",
        )
    return figure.update_xaxes(title="percent of the winner's time")


def payoff(session: Session, go: Any) -> Any:
    """Seconds that a tuning took against what each call saves since; a point a run, with the calls until it pays."""
    frame = make_runs_frame(session)
    frame = frame[frame["spent_s"].gt(0) & frame["saved_ms"].notna()]
    figure = go.Figure(layout={"title": "What tuning took, and what a call saves since"})
    paying = frame[frame["saved_ms"] > 0]
    never = frame[frame["saved_ms"] <= 0]
    told = "%{customdata[0]}<br>%{x:.2f} s of tuning, %{customdata[1]}<extra></extra>"
    for name, rows, heights, color in (
        ("pays", paying, paying["saved_ms"], COLORS["pays"]),
        ("never pays: the extern kernel won", never, [_floor(paying)] * len(never), COLORS["never"]),
    ):
        figure.add_scatter(
            mode="markers",
            name=name,
            x=rows["spent_s"],
            y=heights,
            marker={"color": color, "size": 10, "symbol": "circle" if name == "pays" else "x"},
            customdata=[(label, _pays(calls)) for label, calls in zip(rows["label"], rows["break_even"], strict=True)],
            hovertemplate=told,
        )
    for calls in CALLS if len(paying) else ():
        ends = [frame["spent_s"].min(), frame["spent_s"].max()]
        line = {"color": OTHER, "dash": "dot", "width": 1}
        figure.add_scatter(
            mode="lines", name=f"pays after {calls:,} calls", x=ends, y=[1e3 * s / calls for s in ends], line=line
        )
    figure.update_xaxes(title="seconds of tuning", type="log")
    return figure.update_yaxes(title="ms saved a call", type="log")


def _floor(paying: pd.DataFrame) -> float:
    """Where on a logarithmic axis what saves nothing is drawn: below all that saves something."""
    return float(paying["saved_ms"].min()) / 3 if len(paying) else 1e-3


def _pays(calls: Any) -> str:
    return "never pays" if pd.isna(calls) else f"pays after {calls:,} calls"


def _dearest(runs: list[TuningRun]) -> list[TuningRun]:
    """The runs that took longest, in order of time."""
    kept = sorted(runs, key=lambda run: -(run.spent_s or 0.0))[:SHOWN]
    return [run for run in runs if run in kept]


def _lane(run: TuningRun) -> str:
    return f"{wording.one_line(run.label, 60)} · {run.run_id or run.event_id}"
