"""The plotly figures of a session, for people who analyze, save and restyle. In JupyterLab they need no network.

Renderers of plotly do not follow the notebook's theme. So the background is transparent, and every color has a contrast
of at least 3 on white and on JupyterLab's dark background. All of it is in the template: another one, such as
`figure.update_layout(template="plotly_dark")`, replaces it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from ..diagnosis.causes.cause import find_causes
from ..diagnosis.evidence import group_by
from ..diagnosis.rules.autotune import TuningRun, find_tuning_runs, group_by_run, sort_final_times, summarize_run
from ..diagnosis.rules.cudagraphs import group_by_function
from ..diagnosis.trace_tree import LIBRARIES, TORCH, YOURS, build_trace_tree, walk_trace_tree
from ..errors import CompilediagError
from ..events import CacheLookup, Compile, CudaGraphAction, Phase, Rows
from ..events.words import PHASE_KINDS, describe_code, find_phase_kind, format_phase
from ..formatting import (
    format_amount,
    format_count,
    format_first_line,
    format_function,
    format_function_name,
    format_line,
    format_milliseconds,
    format_seconds,
    format_share,
    format_times,
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

#: The first lane is at the top.
DOWNWARDS = {"autorange": "reversed"}
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


#: How a trace is drawn.
BARS = {"type": "bar", "orientation": "h"}
COLUMNS = {"type": "bar"}
POINTS = {"type": "scatter", "mode": "markers"}


class Mark(NamedTuple):
    """A bar or a point of a series: what is below `hover` and `text` is shown where a person points at it."""

    series: str
    x: Any
    y: Any
    hover: Any = None
    text: str | None = None
    base: float | None = None


@dataclass(frozen=True)
class Sketch:
    """What a figure shows. `series`: name -> the settings of its markers; a series without marks is in the legend too.

    `hover` is plotly's template of what is shown of a mark. `x`, `y` and `layout` are plotly's settings of the axes and
    of the figure. `has_lanes`: y are the names of functions, runs or causes, each of which has a lane of its own.
    """

    title: str
    marks: Sequence[Mark]
    series: Mapping[str, dict[str, Any]]
    hover: str = ""
    look: dict[str, Any] = field(default_factory=lambda: BARS)
    x: dict[str, Any] = field(default_factory=dict)
    y: dict[str, Any] = field(default_factory=dict)
    layout: dict[str, Any] = field(default_factory=dict)
    lines: Sequence[dict[str, Any]] = ()
    has_lanes: bool = True


#: Name -> function that sketches the figure of a session's rows.
FIGURES: dict[str, Callable[[Rows], Sketch]] = {}


def register(name: str) -> Callable[[Callable[[Rows], Sketch]], Callable[[Rows], Sketch]]:
    """The function sketches the figure of this name."""

    def add(draw: Callable[[Rows], Sketch]) -> Callable[[Rows], Sketch]:
        FIGURES[name] = draw
        return draw

    return add


def make_count_axis(title: str, marks: Iterable[tuple[str, float]]) -> dict[str, Any]:
    """The settings of an axis of counts that has ticks at whole numbers only; `marks`: lane and length of its bars."""
    ends: dict[str, float] = defaultdict(float)
    for lane, length in marks:
        ends[lane] += length
    dtick = 1 if max(ends.values(), default=0) <= _FEW else None
    return {"title": title, "tickformat": ",d", "rangemode": "tozero", "dtick": dtick}


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
PAYS, NEVER_PAYS = "pays off", "never pays off: the extern kernel won"


@register("autotune")
def draw_choices(data: Rows) -> Sketch:
    """Every choice of each run by its time, as a multiple of the winner's; one lane per run."""
    found = {run: rows for rows in group_by_run(data) if (run := summarize_run(rows)).winner_ms}
    names, runs = _name_lanes(data), _select_longest(list(found))
    marks = []
    for run in runs:
        for row in sort_final_times(found[run]):
            ms = row.time_ms or 0.0
            ratio = ms / (run.winner_ms or 1.0)
            took = f"{format_milliseconds(ms)}, {format_share(ratio - 1)} longer than the winner"
            parameters = ", ".join(f"{name}={value}" for name, value in (row.parameters or {}).items())
            hover = [row.choice, took, parameters]
            marks.append(Mark(row.choice_kind or "other", ratio, names[run], hover, escape_label(run.label)))
    look = {"size": 9, "opacity": 0.85}
    return Sketch(
        "Autotuning choices: time compared with the winner",
        marks,
        {mark.series: {**look, "color": KINDS.get(mark.series, GRAY)} for mark in marks},
        "%{hovertext}<br>%{customdata[0]}: %{customdata[1]}<br>%{customdata[2]}<extra></extra>",
        POINTS,
        x={
            "title": "multiple of the winner's time",
            "type": "log",
            "tickvals": MULTIPLES,
            "ticktext": [f"{multiple:,}x" for multiple in MULTIPLES],
        },
        y={"categoryorder": "array", "categoryarray": [names[run] for run in runs][::-1]},
    )


@register("autotune_margins")
def draw_margins(data: Rows) -> Sketch:
    """How much longer than the winner the runner-up and the extern kernel take, in percent; two bars per run.

    The axis ends where all but a few outliers end; these have their number at the end of the axis.
    """
    names = _name_lanes(data)
    runs = [run for run in _select_longest(find_tuning_runs(data)) if run.margin_next is not None][::-1]
    marks = [
        Mark(
            series,
            None if margin is None else 100 * margin,
            names[run],
            (run.winner, format_share(margin)),
            escape_label(run.label),
        )
        for run in runs
        for series, margin in (("vs. runner-up", run.margin_next), ("vs. extern kernel", run.margin_extern))
    ]
    x: dict[str, Any] = {"title": "longer than the winner", "ticksuffix": " %"}
    layout: dict[str, Any] = {"barmode": "group"}
    # Of each run the longer bar.
    longest = {mark.y: mark.x for mark in sorted(marks, key=lambda mark: mark.x or 0.0)}
    if (end := find_axis_end(longest.values())) is not None:
        x["range"] = [0, end]
        cut = group_by((mark for mark in marks if mark.x is not None and mark.x > end), lambda mark: mark.y)
        place = {"x": 1.0, "xref": "paper", "xanchor": "left", "showarrow": False}
        shares = {lane: dict.fromkeys(format_share(mark.x / 100) for mark in own) for lane, own in cut.items()}
        notes = [{"text": f"{', '.join(found)} \u25b8", "y": lane, **place} for lane, found in shares.items()]
        layout |= {"annotations": notes, "margin": {"r": 90}}
    return Sketch(
        "Margin of the winner",
        marks,
        {"vs. runner-up": {"color": ORANGE}, "vs. extern kernel": {"color": BLUE}},
        "%{hovertext}<br>winner: %{customdata[0]}<br>%{customdata[1]} longer<extra>%{fullData.name}</extra>",
        x=x,
        layout=layout,
    )


@register("autotune_payoff")
def draw_payoff(data: Rows) -> Sketch:
    """Seconds of tuning compared with what each call saves since; one point per run."""
    runs = [run for run in find_tuning_runs(data) if run.spent_s and run.saved_ms is not None]
    paying = [run.saved_ms for run in runs if run.saved_ms and run.saved_ms > 0]
    # On a logarithmic axis, runs that save nothing are drawn below all that save something.
    floor = min(paying, default=3e-3) / 3
    marks = []
    for run in runs:
        pays = (run.saved_ms or 0) > 0
        after = f"pays off after {format_count(run.break_even)} calls"
        hover = (run.label, "never pays off" if run.break_even is None else after, format_seconds(run.spent_s))
        marks.append(Mark(PAYS if pays else NEVER_PAYS, run.spent_s, run.saved_ms if pays else floor, hover))
    # Lines of equal payoff: what a call must save so that the tuning pays off after so many calls.
    spent = [run.spent_s or 0.0 for run in runs]
    ends = [min(spent), max(spent)] if paying else []
    lines = [
        {
            "type": "scatter",
            "mode": "lines",
            "name": f"pays off after {format_count(calls)} calls",
            "x": ends,
            "y": [1e3 * seconds / calls for seconds in ends],
            "line": {"color": GRAY, "dash": "dot", "width": 1},
        }
        for calls in (CALL_RANGE if paying else ())
    ]
    return Sketch(
        "Cost and benefit of autotuning",
        marks,
        {
            PAYS: {"color": GREEN, "size": 10, "symbol": "circle"},
            NEVER_PAYS: {"color": RED, "size": 10, "symbol": "x"},
        },
        "%{customdata[0]}<br>%{customdata[2]} of tuning, %{customdata[1]}<extra></extra>",
        POINTS,
        x={"title": "seconds of tuning", "type": "log"},
        y={"title": "ms saved per call", "type": "log", "dtick": 1},
        lines=lines,
        has_lanes=False,
    )


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


@register("cudagraphs")
def draw_actions(data: Rows) -> Sketch:
    """The actions on each function: one bar per function, one part per action."""
    rows = [row for row in data.rows(CudaGraphAction) if row.action in ACTIONS]
    counts = Counter((ACTIONS[row.action or ""][0], _name_graph_lane(row)) for row in rows)
    marks = [Mark(name, count, lane) for (name, lane), count in counts.items()]
    seen = {mark.series for mark in marks}
    return Sketch(
        "CUDA graphs by function",
        marks,
        {name: {"color": color} for name, color in ACTIONS.values() if name in seen},
        x=make_count_axis("actions", ((mark.y, mark.x) for mark in marks)),
        y=DOWNWARDS,
        layout={"barmode": "stack"},
    )


@register("cudagraphs_coverage")
def draw_coverage(data: Rows) -> Sketch:
    """The share of each function's calls that a replay answered.

    A function is left out if neither its replays nor its calls without a graph were counted, unless it was skipped.
    """
    marks = []
    for function in (f for f in group_by_function(data) if f.coverage is not None):
        counts = {"captures": function.own_runs, "replays": function.replays, "eager": function.eager}
        for key, (name, _) in GRAPH_CALLS.items():
            # A function that was skipped without a count ran without a graph at every call.
            percent, words = 100.0 * (key == "eager"), "calls not counted"
            if function.calls:
                count = counts[key] or 0
                percent = 100 * count / function.calls
                words = f"{format_amount(count, 'call')}, {format_share(count / function.calls)}"
            marks.append(Mark(name, percent, _name_graph_lane(function.first), words))
    return Sketch(
        "Calls answered by a CUDA graph replay",
        marks,
        {name: {"color": color} for name, color in GRAPH_CALLS.values()},
        "%{y}<br>%{customdata}<extra>%{fullData.name}</extra>",
        x={"title": "share of the calls", "range": [0, 100], "ticksuffix": " %"},
        y=DOWNWARDS,
        layout={"barmode": "stack"},
    )


@register("cudagraphs_skips")
def draw_skips(data: Rows) -> Sketch:
    """Why functions run without CUDA graphs, one bar per reason."""
    lanes: dict[str, list[str]] = defaultdict(list)
    for row in data.rows(CudaGraphAction):
        if row.action in ("skip", "limit"):
            lanes[format_first_line(row.reason or "no reason given", 80)].append(_name_graph_lane(row))
    reasons = sorted(lanes, key=lambda reason: len(lanes[reason]))[-SHOWN_GRAPHS:]
    return Sketch(
        "Why functions run without CUDA graphs",
        [Mark("", len(lanes[each]), escape_label(each), text=", ".join(sorted({*lanes[each]}))) for each in reasons],
        {"": {"color": ACTIONS["skip"][1]}},
        "%{y}<br>%{x}x: %{text}<extra></extra>",
        {**BARS, "textposition": "inside"},
        x=make_count_axis("skips", ((reason, len(own)) for reason, own in lanes.items())),
    )


@register("cudagraphs_captures")
def draw_captures(data: Rows) -> Sketch:
    """Captures over time, one lane per size or broken invariant; x is in seconds since the first capture."""
    captures = [row for row in data.rows(CudaGraphAction) if row.action in ("record", "rerecord")]
    begin_ns = min((row.time_ns for row in captures), default=0)
    marks = []
    for row in captures:
        invariant = None if row.mismatch is None else INVARIANTS.get(row.mismatch, "an invariant was violated")
        lane = f"{_name_graph_lane(row)}: {invariant or row.sizes or 'one size'}"
        duration = None if row.duration_ms is None else format_seconds(row.duration_ms / 1e3)
        known = filter(None, (row.sizes, f"input {row.input}" if row.input else None, duration))
        at_s = (row.time_ns - begin_ns) / 1e9
        marks.append(Mark(ACTIONS[row.action or ""][0], at_s, lane, escape_label(", ".join(known))))
    return Sketch(
        "CUDA graph captures, by size and broken invariant",
        marks,
        {
            "captured": {"color": ACTIONS["record"][1], "size": 9, "symbol": "circle"},
            "re-recorded": {"color": ACTIONS["rerecord"][1], "size": 9, "symbol": "triangle-up"},
        },
        "%{y}<br>%{customdata}<extra></extra>",
        POINTS,
        x={"title": "seconds since the first capture"},
        y=DOWNWARDS,
    )


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
    "loaded": SKY,
    "evicted": TAN,
    "cleared": BROWN,
    "failed": RED,
}
#: These phases contain nearly all others, so their own time is left out.
OUTER_PHASES = frozenset({"dynamo", "entire_frame_compile", "entire_backward_compile"})
#: Kind of a phase -> color; None for a phase of no kind.
PHASE_COLORS = {
    "dynamo": GRAY,
    "aot": BLUE,
    "inductor": PURPLE,
    "codegen": GREEN,
    "triton": YELLOW,
    "tuning": RED,
    None: TAN,
}
#: One figure shows so many phases or causes, the most expensive ones.
SHOWN = 25


@register("timeline")
def draw_timeline(data: Rows) -> Sketch:
    """One lane per function, one bar per compile; x is in seconds since the first compile."""
    compiles = [row for row in data.rows(Compile) if row.duration_s is not None]
    begin_ns = min((row.time_ns for row in compiles), default=0)
    marks = []
    for row in compiles:
        words = ", ".join((format_seconds(row.duration_s), row.outcome or "", describe_code(row.trigger)))
        series = "recompile" if row.is_recompile else "first compile"
        lane, hover = name_lane(row.function, row.line), (row.compile_id or "", words)
        marks.append(Mark(series, row.duration_s, lane, hover, base=(row.time_ns - begin_ns) / 1e9))
    return Sketch(
        "Compiles over time",
        marks,
        {"first compile": {"color": BLUE}, "recompile": {"color": RED}},
        "%{y} %{customdata[0]}<br>%{customdata[1]}<extra></extra>",
        x={"title": "seconds since the first compile"},
        y=DOWNWARDS,
        layout={"barmode": "overlay"},
    )


@register("causes")
def draw_causes(data: Rows) -> Sketch:
    """Seconds lost to recompiles, one bar per root cause, the most expensive on top: your line, and what varies."""
    causes = sorted(find_causes(data), key=lambda cause: cause.seconds)[-SHOWN:]
    names = [format_line(f"{cause.user_place}: {cause.name or describe_code(cause.kind)}", 80) for cause in causes]
    return Sketch(
        "Time lost to recompiles, by cause",
        [
            Mark("", c.seconds, name, f"{format_seconds(c.seconds)} in {format_amount(c.count, 'recompile')}")
            for c, name in zip(causes, make_unique(map(escape_label, names)), strict=True)
        ],
        {"": {"color": RED}},
        "%{y}<br>%{customdata}<extra></extra>",
        x={"title": "seconds"},
    )


@register("caches")
def draw_caches(data: Rows) -> Sketch:
    """Lookups and stores by cache and outcome; a remote tier is a bar of its own."""
    lookups = data.rows(CacheLookup)
    counts = Counter((_name_cache(row), row.outcome) for row in lookups)
    caches = sorted({_name_cache(row) for row in lookups})
    seen = {outcome: color for outcome, color in OUTCOMES.items() if any(counts[cache, outcome] for cache in caches)}
    marks = [Mark(describe_code(outcome), cache, counts[cache, outcome]) for outcome in seen for cache in caches]
    return Sketch(
        "Cache lookups and stores, by outcome",
        marks,
        {describe_code(outcome): {"color": color} for outcome, color in seen.items()},
        "%{x}<br>%{y:,d}x %{fullData.name}<extra></extra>",
        COLUMNS,
        y=make_count_axis("lookups and stores", ((mark.x, mark.y) for mark in marks)),
        layout={"barmode": "stack"},
        has_lanes=False,
    )


def _name_cache(row: CacheLookup) -> str:
    name = describe_code(row.cache)
    return f"{name} (remote)" if row.tier == "remote" else name


@register("phases")
def draw_phases(data: Rows) -> Sketch:
    """Seconds of each phase without the phases inside it, the longest on top. Pointing at a bar shows torch's names."""
    seconds: dict[str, float] = defaultdict(float)
    names: dict[str, list[str]] = defaultdict(list)
    for name, own in sum_own_seconds(data.rows(Phase)).items():
        seconds[format_phase(name)] += own
        names[format_phase(name)].append(name)
    longest = sorted(seconds, key=seconds.__getitem__)[-SHOWN:]
    kinds = {name: find_phase_kind(names[name][0]) for name in longest}
    words = {kind: PHASE_KINDS[kind][0] if kind else "other" for kind in PHASE_COLORS}
    hover = {name: f"{format_seconds(seconds[name])}<br>{escape_label(', '.join(names[name]))}" for name in longest}
    return Sketch(
        "Compile time by phase",
        [Mark(words[kinds[name]], seconds[name], name, hover[name]) for name in longest],
        {words[kind]: {"color": color} for kind, color in PHASE_COLORS.items() if kind in kinds.values()},
        "%{y}: %{customdata}<extra></extra>",
        x={"title": "seconds in the phase itself"},
        y={"categoryorder": "array", "categoryarray": longest},
        layout={"barmode": "overlay"},
    )


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


# What Dynamo traces

#: Whose code a function is -> its color.
OWNERS = {YOURS: BLUE, LIBRARIES: GREEN, TORCH: GRAY}
#: The share of all tracing that a bar of the flame graph needs: narrower ones can't be seen.
LEAST_SHARE = 0.001
#: px of a row of the flame graph.
ROW_HEIGHT = 24


@register("tracing")
def draw_tracing(data: Rows) -> Sketch:
    """A flame graph of what Dynamo traced, in all compiles: a bar's width is a function's seconds, below it is what it
    inlines. Functions with less than a thousandth of all seconds are left out.
    """
    roots = build_trace_tree(data)
    total = sum(root.total_s for root in roots)
    marks: list[Mark] = []
    end = 0.0
    #: Number of a function -> where the next one that it calls begins.
    free: dict[int, float] = {}
    for calls, callers in walk_trace_tree(roots):
        begin = free[id(callers[-1])] if callers else end
        free[id(calls)] = begin
        if callers:
            free[id(callers[-1])] += calls.total_s
        else:
            end += calls.total_s
        if total and calls.total_s >= LEAST_SHARE * total:
            where = escape_label(format_function(*calls.place))
            at = f", called at line {calls.call_line}" if calls.call_line is not None else ""
            took = f"{format_seconds(calls.total_s)}, {format_share(calls.total_s / total)} of tracing"
            own = f"{format_seconds(calls.own_s)} of its own; traced {format_times(calls.count)}{at}"
            marks.append(Mark(calls.owner, calls.total_s, len(callers), [where, took, own], where, begin))
    depth = max((mark.y for mark in marks), default=0)
    return Sketch(
        "Tracing by function",
        marks,
        {name: {"color": color} for name, color in OWNERS.items() if any(mark.series == name for mark in marks)},
        "%{customdata[0]}<br>%{customdata[1]}<br>%{customdata[2]}<extra>%{fullData.name}</extra>",
        {**BARS, "textposition": "inside", "insidetextanchor": "start", "textangle": 0},
        x={"title": "seconds of tracing"},
        y={"autorange": "reversed", "visible": False},
        layout={
            "barmode": "overlay",
            "bargap": 0.06,
            "uniformtext": {"mode": "hide", "minsize": 11},
            "height": max(LEAST_HEIGHT, FRAME_HEIGHT + ROW_HEIGHT * (depth + 1)),
        },
        has_lanes=False,
    )


# The figure of a sketch


def make_figure(data: Rows, name: str) -> Figure:
    """The figure of that name. CompilediagError if there is none, or plotly is not installed."""
    if name not in FIGURES:
        raise CompilediagError(f"there is no figure {name!r}; choose one of: {', '.join(sorted(FIGURES))}")
    try:
        import plotly.graph_objects as go
    except ImportError:
        raise CompilediagError("figures need plotly: pip install plotly") from None
    sketch = FIGURES[name](data)
    traces = []
    by_series = group_by(sketch.marks, lambda mark: mark.series)
    for series, marker in sketch.series.items():
        own = by_series.get(series, [])
        trace = {**sketch.look, "marker": marker, "x": [mark.x for mark in own], "y": [mark.y for mark in own]}
        cells = {
            "customdata": [mark.hover for mark in own],
            "text" if "textposition" in sketch.look else "hovertext": [mark.text for mark in own],
            "base": [mark.base for mark in own],
        }
        trace |= {key: values for key, values in cells.items() if any(value is not None for value in values)}
        trace |= {"name": series} if series else {}
        traces.append(trace | ({"hovertemplate": sketch.hover} if sketch.hover else {}))
    layout: dict[str, Any] = {"title": sketch.title, "xaxis": sketch.x, "yaxis": sketch.y, **sketch.layout}
    layout["margin"] = {"l": 10, "r": 28, "t": 64, "b": 10, **layout.get("margin", {})}
    if sketch.has_lanes:
        # The px that the names of all lanes need; bars that are grouped are next to each other in a lane.
        beside = len(sketch.series) - 1 if sketch.layout.get("barmode") == "group" else 0
        lanes = len({mark.y for mark in sketch.marks})
        layout["height"] = max(LEAST_HEIGHT, FRAME_HEIGHT + lanes * (LANE_HEIGHT + 14 * beside))
    figure = go.Figure([*traces, *sketch.lines], layout)
    if not sketch.marks:
        figure.add_annotation(text="no data in this session", showarrow=False, font_size=14)
        figure.update_xaxes(visible=False).update_yaxes(visible=False)
    return figure.update_layout(template=TEMPLATE)
