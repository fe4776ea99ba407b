"""The plotly figures of a session, for people who analyze, save and restyle. In JupyterLab they need no network.

Renderers of plotly do not follow the notebook's theme. So the background is transparent, and every color has a contrast
of at least 3 on white and on JupyterLab's dark background. All of it is in the template: another one, such as
`figure.update_layout(template="plotly_dark")`, replaces it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from html import escape
from itertools import pairwise
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

from ..diagnosis.causes.cause import Cause
from ..diagnosis.causes.grouping import find_causes
from ..diagnosis.rules.autotune import TuningRun, find_tuning_runs, group_by_run, sort_final_times, summarize_run
from ..diagnosis.rules.cudagraphs import GraphFunction, group_by_function
from ..errors import CompilediagError
from ..events import AutotuneChoice, CacheLookup, Compile, CudaGraphAction, Phase, Rows
from ..events.words import describe_code, format_phase
from ..formatting import (
    format_amount,
    format_count,
    format_first_line,
    format_function_name,
    format_line,
    format_milliseconds,
    format_seconds,
    format_share,
)

if TYPE_CHECKING:
    from plotly.graph_objects import Figure


BLUE, SKY, GREEN, TEAL = "#4c78a8", "#5a97bf", "#4a9a41", "#2c9c94"
RED, ORANGE, YELLOW, BROWN = "#e45756", "#d9700f", "#9c8500", "#b07d66"
PURPLE, VIOLET, TAN, GRAY = "#b279a2", "#7b61c9", "#94877f", "#8a8a8e"
#: Of all texts: the gray whose contrast is the same on white and on #111111.
TEXT = "#7a7a7a"
GRID = "rgba(128, 128, 128, 0.25)"
CLEAR = "rgba(0, 0, 0, 0)"
#: px of a lane with one bar, and of what is above and below all lanes.
LANE_HEIGHT, FRAME_HEIGHT, LEAST_HEIGHT = 26, 130, 360
#: Numbers up to this get a tick each.
_FEW = 10
#: Outliers are this many times larger than the value below them, and at most this share of the values.
_OUTLIER_FACTOR, _OUTLIER_SHARE = 3.0, 0.2

_AXIS = {"gridcolor": GRID, "zerolinecolor": GRID, "linecolor": GRID, "automargin": True}
TEMPLATE: dict[str, Any] = {
    "layout": {
        "paper_bgcolor": CLEAR,
        "plot_bgcolor": CLEAR,
        "font": {"color": TEXT, "size": 13},
        "title": {"x": 0.01, "font": {"size": 16}},
        "xaxis": _AXIS,
        "yaxis": _AXIS,
        "legend": {
            "bgcolor": CLEAR,
            "orientation": "h",
            "traceorder": "normal",
            "xref": "container",
            "xanchor": "left",
            "x": 0.01,
            "yref": "container",
            "yanchor": "bottom",
            "y": 0.01,
        },
        "modebar": {"bgcolor": CLEAR, "color": TEXT, "activecolor": BLUE},
        "hoverlabel": {"bgcolor": "#333333", "bordercolor": TEXT, "font": {"color": "#ffffff"}, "align": "left"},
        "annotationdefaults": {"font": {"color": TEXT}},
    },
    "data": {"bar": [{"type": "bar", "marker": {"line": {"color": GRID, "width": 1}}}]},
}


def set_height(figure: Figure, lanes: int, bars: int = 1) -> None:
    """Make a figure high enough for the names of all its lanes, with so many bars each."""
    figure.update_layout(height=max(LEAST_HEIGHT, FRAME_HEIGHT + lanes * (LANE_HEIGHT + 14 * (bars - 1))))


def make_count_axis(counts: Iterable[float]) -> dict[str, Any]:
    """The settings of an axis of counts that has ticks at whole numbers only; `counts` are the ends of its bars."""
    most = max(counts, default=0)
    return {"tickformat": ",d", "rangemode": "tozero", "dtick": 1 if most <= _FEW else None}


def find_axis_end(values: Iterable[float | None]) -> float | None:
    """Where an axis has to end so that a few outliers do not hide all other values; None if there is no outlier."""
    known = sorted((value for value in values if value is not None and value > 0), reverse=True)
    most = max(1, int(_OUTLIER_SHARE * len(known)))
    pairs = pairwise(known[: most + 1])
    ends = [below for above, below in pairs if above > _OUTLIER_FACTOR * below]
    return 1.15 * ends[-1] if ends else None


def name_lane(function: str | None, line: int | None) -> str:
    """The name of a function's lane: `forward:30`, `forward, after the graph break at line 21`."""
    name = format_function_name(function) or "unknown function"
    place = name if line is None or name != function else f"{name}:{line}"
    return escape_label(format_line(place, 80))


def escape_label(text: str) -> str:
    """A text as a label: plotly takes tags for formatting, and text between dollar signs for a formula."""
    return escape(text, quote=False).replace("$", "&#36;")


def make_unique(names: Iterable[str]) -> list[str]:
    """Number the names that appear again: bars of one name would cover each other."""
    seen: Counter[str] = Counter()
    unique = []
    for name in names:
        seen[name] += 1
        unique.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return unique


def sum_stacks(traces: Iterable[tuple[Sequence[str], Sequence[float]]]) -> list[float]:
    """The ends of stacked bars; each trace is its lanes and their lengths."""
    ends: Counter[str] = Counter()
    for lanes, lengths in traces:
        for lane, length in zip(lanes, lengths, strict=True):
            ends[lane] += length  # type: ignore[assignment]  # A Counter of floats.
    return list(ends.values())


# Autotuning: choices by time, margins, and the time of tuning compared with what it saves

#: The color of a kind of choice.
KINDS = {"extern": BLUE, "triton": GREEN, "cpp": TEAL, "cutlass": VIOLET}
#: One figure shows so many runs, those that took longest.
SHOWN_TUNINGS = 30
#: Characters of a lane's name. Pointing at a bar or a choice shows the whole name.
LANE_LENGTH = 44
#: The ticks of an axis of multiples.
MULTIPLES = (1, 2, 3, 5, 10, 20, 50, 100, 200, 500, 1_000, 10_000, 100_000)
#: The numbers of calls that are drawn as lines: a tuning below a line pays off later.
CALL_RANGE = (1_000, 1_000_000)


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
    """Lines of equal payoff: what a call must save so that the tuning pays off after CALL_RANGE calls."""
    for calls in CALL_RANGE if spent else ():
        ends = [min(spent), max(spent)]
        line = {"color": GRAY, "dash": "dot", "width": 1}
        name = f"pays off after {format_count(calls)} calls"
        figure.add_scatter(mode="lines", name=name, x=ends, y=[1e3 * s / calls for s in ends], line=line)


def _format_payoff(run: TuningRun) -> str:
    return "never pays off" if run.break_even is None else f"pays off after {format_count(run.break_even)} calls"


def _select_longest(runs: list[TuningRun]) -> list[TuningRun]:
    """The runs that took longest, in order of time."""
    kept = sorted(runs, key=lambda run: -(run.spent_s or 0.0))[:SHOWN_TUNINGS]
    return [run for run in runs if run in kept]


def _name_lanes(data: Rows) -> dict[TuningRun, str]:
    """Run -> the name of its lane, the same in every figure of a session."""
    runs = find_tuning_runs(data)
    names = make_unique(escape_label(format_line(run.label, LANE_LENGTH)) for run in runs)
    return dict(zip(runs, names, strict=True))


# CUDA graphs

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
GRAPH_CALLS = {"replays": ("replayed", GREEN), "captures": ("captured", BLUE), "eager": ("no graph", RED)}
#: torch's name of a violated invariant -> what happened.
INVARIANTS = {
    "CudagraphManagedIdxMismatch": "an output of another graph is at a new address",
    "StaticInputIdxMismatch": "a static input is at a new address",
    "ExpectedDeadIndicesBeforeGraphMismatch": "an output of an earlier run is still used",
}
#: The most frequent reasons that one figure shows.
SHOWN_GRAPHS = 25


def draw_actions(data: Rows, go: ModuleType) -> Figure:
    """The actions on each function: one bar per function, one part per action."""
    rows = data.rows(CudaGraphAction)
    figure = go.Figure(layout={"title": "CUDA graphs by function", "barmode": "stack"})
    for action, (name, color) in ACTIONS.items():
        counts = Counter(_name_graph_lane(row) for row in rows if row.action == action)
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
    lanes = [_name_graph_lane(f.first) for f in functions]
    figure = go.Figure(layout={"title": "Calls answered by a CUDA graph replay", "barmode": "stack"})
    set_height(figure, len(lanes))
    for key, (name, color) in GRAPH_CALLS.items():
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
            lanes[format_first_line(row.reason or "no reason given", 80)].append(_name_graph_lane(row))
    reasons = sorted(lanes, key=lambda reason: len(lanes[reason]))[-SHOWN_GRAPHS:]
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
    return f"{_name_graph_lane(row)}: {invariant or row.sizes or 'one size'}"


def _describe_capture(row: CudaGraphAction) -> str:
    """What is known of a capture: sizes, the input that changed, how long it took."""
    duration = None if row.duration_ms is None else format_seconds(row.duration_ms / 1e3)
    parts = (row.sizes, f"input {row.input}" if row.input else None, duration)
    return escape_label(", ".join(filter(None, parts)))


def _name_graph_lane(row: CudaGraphAction) -> str:
    if row.function is None:
        return "your own graphs"
    place = name_lane(row.function, row.line)
    return place if row.mode is None or row.mode == "forward" else f"{place} {row.mode}"


# Compiles, caches and phases

#: Cache outcome -> color, in the order of the bars' parts.
OUTCOMES = {
    "hit": GREEN,
    "miss": YELLOW,
    "guard_miss": ORANGE,
    "bypass": PURPLE,
    "disabled": GRAY,
    "saved": BLUE,
    "written": SKY,
    "evicted": TAN,
    "cleared": BROWN,
    "failed": RED,
}
#: These phases contain nearly all others, so their own time is left out.
OUTER_PHASES = frozenset({"dynamo", "entire_frame_compile", "entire_backward_compile"})
#: One figure shows so many phases or causes, the most expensive ones.
SHOWN = 25


def draw_timeline(data: Rows, go: ModuleType) -> Figure:
    """One lane per function, one bar per compile; x is in seconds since the first compile."""
    compiles = [row for row in data.rows(Compile) if row.duration_s is not None]
    begin_ns = min((row.time_ns for row in compiles), default=0)
    figure = go.Figure(layout={"title": "Compiles over time", "barmode": "overlay"})
    set_height(figure, len({_name_row_lane(row) for row in compiles}))
    for label, color, is_recompile in (
        ("first compile", BLUE, False),
        ("recompile", RED, True),
    ):
        rows = [row for row in compiles if bool(row.is_recompile) is is_recompile]
        figure.add_bar(
            orientation="h",
            name=label,
            marker_color=color,
            y=[_name_row_lane(row) for row in rows],
            base=[(row.time_ns - begin_ns) / 1e9 for row in rows],
            x=[row.duration_s for row in rows],
            customdata=[(row.compile_id or "", _describe_bar(row)) for row in rows],
            hovertemplate="%{y} %{customdata[0]}<br>%{customdata[1]}<extra></extra>",
        )
    figure.update_xaxes(title="seconds since the first compile")
    return figure.update_yaxes(autorange="reversed")


def _describe_bar(row: Compile) -> str:
    return ", ".join((format_seconds(row.duration_s), row.outcome or "", describe_code(row.trigger)))


def _name_row_lane(row: Compile) -> str:
    return name_lane(row.function, row.line)


def draw_causes(data: Rows, go: ModuleType) -> Figure:
    """Seconds lost to recompiles, one bar per root cause, the most expensive on top."""
    causes = sorted(find_causes(data), key=lambda cause: cause.seconds)[-SHOWN:]
    names = [_name_cause(cause) for cause in causes]
    figure = go.Figure(layout={"title": "Time lost to recompiles, by cause"})
    set_height(figure, len(causes))
    figure.add_bar(
        orientation="h",
        y=make_unique(names),
        x=[cause.seconds for cause in causes],
        marker_color=RED,
        customdata=[f"{format_seconds(c.seconds)} in {format_amount(c.count, 'recompile')}" for c in causes],
        hovertemplate="%{y}<br>%{customdata}<extra></extra>",
    )
    return figure.update_xaxes(title="seconds")


def _name_cause(cause: Cause) -> str:
    """The user's line and what varies there."""
    return escape_label(format_line(f"{cause.user_place}: {cause.name or describe_code(cause.kind)}", 80))


def draw_caches(data: Rows, go: ModuleType) -> Figure:
    """Lookups and stores by cache and outcome; a remote tier is a bar of its own."""
    lookups = data.rows(CacheLookup)
    counts = Counter((_name_cache(row), row.outcome) for row in lookups)
    caches = sorted({_name_cache(row) for row in lookups})
    figure = go.Figure(layout={"title": "Cache lookups and stores, by outcome", "barmode": "stack"})
    for outcome, color in OUTCOMES.items():
        heights = [counts[cache, outcome] for cache in caches]
        if any(heights):
            figure.add_bar(
                name=describe_code(outcome),
                x=caches,
                y=heights,
                marker_color=color,
                hovertemplate="%{x}<br>%{y:,d}x %{fullData.name}<extra></extra>",
            )
    axis = make_count_axis(sum_stacks((bar.x, bar.y) for bar in figure.data))
    return figure.update_yaxes(title="lookups and stores", **axis)


def _name_cache(row: CacheLookup) -> str:
    name = describe_code(row.cache)
    return f"{name} (remote)" if row.tier == "remote" else name


def draw_phases(data: Rows, go: ModuleType) -> Figure:
    """Seconds of each phase without the phases inside it, the longest on top. Pointing at a bar shows torch's names."""
    seconds: dict[str, float] = defaultdict(float)
    names: dict[str, list[str]] = defaultdict(list)
    for name, own in sum_own_seconds(data.rows(Phase)).items():
        seconds[format_phase(name)] += own
        names[format_phase(name)].append(name)
    longest = sorted(seconds, key=seconds.__getitem__)[-SHOWN:]
    figure = go.Figure(layout={"title": "Compile time by phase"})
    set_height(figure, len(longest))
    figure.add_bar(
        orientation="h",
        y=longest,
        x=[seconds[phase] for phase in longest],
        marker_color=BLUE,
        customdata=[_describe_phase(seconds[phase], names[phase]) for phase in longest],
        hovertemplate="%{y}: %{customdata}<extra></extra>",
    )
    return figure.update_xaxes(title="seconds in the phase itself")


def _describe_phase(seconds: float, names: Iterable[str]) -> str:
    return f"{format_seconds(seconds)}<br>{escape_label(', '.join(names))}"


def sum_own_seconds(phases: Sequence[Phase]) -> dict[str, float]:
    """Phase -> seconds in all compiles, without those of the phases inside it; without OUTER_PHASES."""
    total: dict[tuple[object, str | None], float] = defaultdict(float)
    inner: dict[tuple[object, str | None], float] = defaultdict(float)
    for row in phases:
        compile: object = row.compile_key or (row.rank, row.pid, row.compile_id)
        total[compile, row.name] += row.duration_s or 0.0
        inner[compile, row.parent] += row.duration_s or 0.0
    own: dict[str, float] = defaultdict(float)
    for (compile, name), seconds in total.items():
        if name is not None and name not in OUTER_PHASES:
            own[name] += max(0.0, seconds - inner.get((compile, name), 0.0))
    return own


# The figures by name

#: Name -> function that draws the figure from a session's rows with plotly.graph_objects.
FIGURES: dict[str, Callable[[Rows, ModuleType], Figure]] = {
    "timeline": draw_timeline,
    "causes": draw_causes,
    "caches": draw_caches,
    "phases": draw_phases,
    "autotune": draw_choices,
    "autotune_margins": draw_margins,
    "autotune_payoff": draw_payoff,
    "cudagraphs": draw_actions,
    "cudagraphs_captures": draw_captures,
    "cudagraphs_coverage": draw_coverage,
    "cudagraphs_skips": draw_skips,
}


def make_figure(data: Rows, name: str) -> Figure:
    """The figure of that name. CompilediagError if there is none, or plotly is not installed."""
    if name not in FIGURES:
        raise CompilediagError(f"there is no figure {name!r}; choose one of: {', '.join(sorted(FIGURES))}")
    try:
        import plotly.graph_objects as go
    except ImportError:
        raise CompilediagError("figures need plotly: pip install plotly") from None
    figure = FIGURES[name](data, go)
    if not any(trace.x is not None and len(trace.x) for trace in figure.data):
        figure.add_annotation(text="no data in this session", showarrow=False, font_size=14)
        figure.update_xaxes(visible=False).update_yaxes(visible=False)
    right = figure.layout.margin.r or 28
    return figure.update_layout(template=TEMPLATE, margin={"l": 10, "r": right, "t": 64, "b": 10})
