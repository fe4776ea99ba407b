"""Figures of autotuning: choices by time, margins, and the time of tuning compared with what it saves."""

from __future__ import annotations

from collections.abc import Iterable
from types import ModuleType
from typing import TYPE_CHECKING, NamedTuple

from ...diagnosis.rules.autotune_runs import TuningRun, find_tuning_runs, group_by_run, sort_final_times, summarize_run
from ...events import AutotuneChoice, Rows
from ...formatting import format_count, format_line, format_milliseconds, format_seconds, format_share
from .figure_style import (
    BLUE,
    GRAY,
    GREEN,
    ORANGE,
    RED,
    TEAL,
    VIOLET,
    escape_label,
    find_axis_end,
    make_unique,
    set_height,
)

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

#: The color of a kind of choice.
KINDS = {"extern": BLUE, "triton": GREEN, "cpp": TEAL, "cutlass": VIOLET}
#: One figure shows so many runs, those that took longest.
SHOWN = 30
#: Characters of a lane's name. Pointing at a bar or a choice shows the whole name.
LANE_LENGTH = 44
#: The ticks of an axis of multiples.
MULTIPLES = (1, 2, 3, 5, 10, 20, 50, 100, 200, 500, 1_000, 10_000, 100_000)
#: The numbers of calls that are drawn as lines: a tuning below a line pays off later.
CALLS = (1_000, 1_000_000)


class ChoicePoint(NamedTuple):
    """A choice of a run: `ratio` is its time as a multiple of the winner's."""

    lane: str
    run: str
    kind: str
    ratio: float
    choice: str | None
    ms: float
    parameters: str


def draw_choices(data: Rows, go: ModuleType) -> Figure:
    """Every choice of each run by its time, as a multiple of the winner's; one lane per run."""
    found = {run: rows for rows in group_by_run(data) if (run := summarize_run(rows)).winner_ms}
    names, runs = _name_lanes(data), _select_longest(list(found))
    choices = [choice for run in runs for choice in _list_choices(names[run], run, found[run])]
    figure = go.Figure(layout={"title": "Autotuning choices: time compared with the winner"})
    set_height(figure, len(runs))
    for kind in dict.fromkeys(choice.kind for choice in choices):
        own = [choice for choice in choices if choice.kind == kind]
        figure.add_scatter(
            mode="markers",
            name=kind,
            x=[choice.ratio for choice in own],
            y=[choice.lane for choice in own],
            marker={"color": KINDS.get(kind, GRAY), "size": 9, "opacity": 0.85},
            customdata=[[choice.choice, _format_time(choice), choice.parameters] for choice in own],
            hovertext=[choice.run for choice in own],
            hovertemplate="%{hovertext}<br>%{customdata[0]}: %{customdata[1]}<br>%{customdata[2]}<extra></extra>",
        )
    ticks = {"tickvals": MULTIPLES, "ticktext": [f"{multiple:,}x" for multiple in MULTIPLES]}
    figure.update_xaxes(title="multiple of the winner's time", type="log", **ticks)
    return figure.update_yaxes(categoryorder="array", categoryarray=[names[run] for run in runs][::-1])


def _format_time(choice: ChoicePoint) -> str:
    return f"{format_milliseconds(choice.ms)}, {format_share(choice.ratio - 1)} longer than the winner"


def _list_choices(lane: str, run: TuningRun, rows: Iterable[AutotuneChoice]) -> list[ChoicePoint]:
    """The choices of a run that have a time."""
    return [
        ChoicePoint(
            lane=lane,
            run=escape_label(run.label),
            kind=row.choice_kind or "other",
            ratio=(row.time_ms or 0.0) / (run.winner_ms or 1.0),
            choice=row.choice,
            ms=row.time_ms or 0.0,
            parameters=", ".join(f"{name}={value}" for name, value in (row.parameters or {}).items()),
        )
        for row in sort_final_times(rows)
    ]


def draw_margins(data: Rows, go: ModuleType) -> Figure:
    """How much longer than the winner the runner-up and the extern kernel take, in percent; two bars per run.

    The axis ends where all but a few outliers end; these have their number at the end of the axis.
    """
    names = _name_lanes(data)
    runs = [run for run in _select_longest(find_tuning_runs(data)) if run.margin_next is not None][::-1]
    figure = go.Figure(layout={"title": "Margin of the winner", "barmode": "group"})
    set_height(figure, len(runs), bars=2)
    for name, color, margins in (
        ("vs. runner-up", ORANGE, [run.margin_next for run in runs]),
        ("vs. extern kernel", BLUE, [run.margin_extern for run in runs]),
    ):
        figure.add_bar(
            orientation="h",
            name=name,
            y=[names[run] for run in runs],
            x=[None if margin is None else 100 * margin for margin in margins],
            marker_color=color,
            customdata=[(run.winner, format_share(margin)) for run, margin in zip(runs, margins, strict=True)],
            hovertext=[escape_label(run.label) for run in runs],
            hovertemplate="%{hovertext}<br>winner: %{customdata[0]}<br>%{customdata[1]} longer<extra>"
            + name
            + "</extra>",
        )
    _end_axis_before_outliers(figure)
    return figure.update_xaxes(title="longer than the winner", ticksuffix=" %")


def _end_axis_before_outliers(figure: Figure) -> None:
    """Cut the bars that are much longer than the others, and write their percent next to them."""
    bars = [(lane, percent) for bar in figure.data for lane, percent in zip(bar.y, bar.x, strict=True)]
    longest = dict(sorted(bars, key=lambda bar: bar[1] or 0.0))
    end = find_axis_end(longest.values())
    if end is None:
        return
    figure.update_xaxes(range=[0, end])
    cut: dict[str, dict[str, None]] = {}
    for lane, percent in bars:
        if percent is not None and percent > end:
            cut.setdefault(lane, {})[format_share(percent / 100)] = None
    for lane, shares in cut.items():
        text = f"{', '.join(shares)} \u25b8"
        figure.add_annotation(text=text, y=lane, x=1.0, xref="paper", xanchor="left", showarrow=False)
    figure.update_layout(margin_r=90)


def draw_payoff(data: Rows, go: ModuleType) -> Figure:
    """Seconds of tuning compared with what each call saves since; one point per run."""
    runs = [run for run in find_tuning_runs(data) if run.spent_s and run.saved_ms is not None]
    paying = [run for run in runs if (run.saved_ms or 0) > 0]
    never = [run for run in runs if (run.saved_ms or 0) <= 0]
    # On a logarithmic axis, runs that save nothing are drawn below all that save something.
    floor = min((run.saved_ms or 0 for run in paying), default=3e-3) / 3
    figure = go.Figure(layout={"title": "Cost and benefit of autotuning"})
    for name, own, heights, color, symbol in (
        ("pays off", paying, [run.saved_ms for run in paying], GREEN, "circle"),
        ("never pays off: the extern kernel won", never, [floor] * len(never), RED, "x"),
    ):
        figure.add_scatter(
            mode="markers",
            name=name,
            x=[run.spent_s for run in own],
            y=heights,
            marker={"color": color, "size": 10, "symbol": symbol},
            customdata=[(run.label, _format_payoff(run), format_seconds(run.spent_s)) for run in own],
            hovertemplate="%{customdata[0]}<br>%{customdata[2]} of tuning, %{customdata[1]}<extra></extra>",
        )
    _add_payoff_lines(figure, [run.spent_s or 0.0 for run in runs] if paying else [])
    figure.update_xaxes(title="seconds of tuning", type="log")
    return figure.update_yaxes(title="ms saved per call", type="log", dtick=1)


def _add_payoff_lines(figure: Figure, spent: list[float]) -> None:
    """Lines of equal payoff: what a call must save so that the tuning pays off after CALLS calls."""
    for calls in CALLS if spent else ():
        ends = [min(spent), max(spent)]
        line = {"color": GRAY, "dash": "dot", "width": 1}
        name = f"pays off after {format_count(calls)} calls"
        figure.add_scatter(mode="lines", name=name, x=ends, y=[1e3 * s / calls for s in ends], line=line)


def _format_payoff(run: TuningRun) -> str:
    return "never pays off" if run.break_even is None else f"pays off after {format_count(run.break_even)} calls"


def _select_longest(runs: list[TuningRun]) -> list[TuningRun]:
    """The runs that took longest, in order of time."""
    kept = sorted(runs, key=lambda run: -(run.spent_s or 0.0))[:SHOWN]
    return [run for run in runs if run in kept]


def _name_lanes(data: Rows) -> dict[TuningRun, str]:
    """Run -> the name of its lane, the same in every figure of a session."""
    runs = find_tuning_runs(data)
    names = make_unique(escape_label(format_line(run.label, LANE_LENGTH)) for run in runs)
    return dict(zip(runs, names, strict=True))
