"""Figures of compiles: when they ran, what caused recompiles, what caches answered, which phases took the time."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from types import ModuleType
from typing import TYPE_CHECKING

from ...diagnosis.causes.cause import Cause
from ...diagnosis.causes.grouping import find_causes
from ...events import CacheLookup, Compile, Phase, Rows
from ...events.words import describe_code, format_phase
from ...formatting import format_amount, format_line, format_seconds
from .figure_style import (
    BLUE,
    BROWN,
    GRAY,
    GREEN,
    ORANGE,
    PURPLE,
    RED,
    SKY,
    TAN,
    YELLOW,
    escape_label,
    make_count_axis,
    make_unique,
    name_lane,
    set_height,
    sum_stacks,
)

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

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
