"""Figures of compiles: when they ran, what caused recompiles, what caches answered, which phases took the time."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from types import ModuleType
from typing import TYPE_CHECKING

from ...diagnosis.causes.grouping import find_causes
from ...events import CacheLookup, Compile, Phase, Rows
from ...formatting import format_amount, format_expression, format_seconds

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

#: The colors of the dashboard; they work in light and dark themes.
COLORS = {"compile": "#4c78a8", "recompile": "#e45756"}
#: Cache outcome -> color, in the order of the bars' parts.
OUTCOMES = {
    "hit": "#54a24b",
    "miss": "#eeca3b",
    "guard_miss": "#f58518",
    "bypass": "#b279a2",
    "disabled": "#9d9da1",
    "saved": "#4c78a8",
    "written": "#9ecae9",
    "evicted": "#bab0ac",
    "cleared": "#d8b5a5",
    "failed": "#e45756",
}
#: These phases contain nearly all others, so their own time is left out.
OUTER_PHASES = frozenset({"dynamo", "entire_frame_compile", "entire_backward_compile"})
SHOWN_PHASES = 25


def draw_timeline(data: Rows, go: ModuleType) -> Figure:
    """One lane per function, one bar per compile; x is in seconds since the first compile."""
    compiles = data.rows(Compile)
    begin_ns = min((row.time_ns for row in compiles), default=0)
    figure = go.Figure(layout={"title": "Compiles over time", "barmode": "overlay"})
    for label, color, is_recompile in (
        ("first compile", COLORS["compile"], False),
        ("recompile", COLORS["recompile"], True),
    ):
        rows = [row for row in compiles if bool(row.is_recompile) is is_recompile]
        figure.add_bar(
            orientation="h",
            name=label,
            marker_color=color,
            y=[_name_lane(row) for row in rows],
            base=[(row.time_ns - begin_ns) / 1e9 for row in rows],
            x=[row.duration_s for row in rows],
            customdata=[(row.compile_id or "", _describe_bar(row)) for row in rows],
            hovertemplate="%{y} %{customdata[0]}<br>%{customdata[1]}<extra></extra>",
        )
    figure.update_xaxes(title="seconds since the first compile")
    return figure.update_yaxes(autorange="reversed")


def _describe_bar(row: Compile) -> str:
    return ", ".join((format_seconds(row.duration_s), row.outcome or "", row.trigger or ""))


def _name_lane(row: Compile) -> str:
    name = row.function or "?"
    return name if row.line is None else f"{name}:{row.line}"


def draw_causes(data: Rows, go: ModuleType) -> Figure:
    """Seconds lost to recompiles, one bar per root cause, the most expensive on top."""
    causes = sorted(find_causes(data), key=lambda cause: cause.seconds)
    names = [
        f"{cause.place_text}: {format_expression(cause.source) or cause.kind.replace('_', ' ')}" for cause in causes
    ]
    figure = go.Figure(layout={"title": "Seconds lost to recompiles, by cause"})
    figure.add_bar(
        orientation="h",
        y=_make_unique(names),
        x=[cause.seconds for cause in causes],
        marker_color=COLORS["recompile"],
        customdata=[f"{format_seconds(c.seconds)} in {format_amount(c.count, 'recompile')}" for c in causes],
        hovertemplate="%{y}<br>%{customdata}<extra></extra>",
    )
    return figure.update_xaxes(title="seconds")


def _make_unique(names: Iterable[str]) -> list[str]:
    """Number the names that appear again: bars of one name would cover each other."""
    seen: Counter[str] = Counter()
    unique = []
    for name in names:
        seen[name] += 1
        unique.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return unique


def draw_caches(data: Rows, go: ModuleType) -> Figure:
    """Lookups and stores by cache and outcome; a remote tier is a bar of its own."""
    lookups = data.rows(CacheLookup)
    counts = Counter((_name_cache(row), row.outcome) for row in lookups)
    caches = sorted({_name_cache(row) for row in lookups})
    figure = go.Figure(layout={"title": "Cache lookups and stores, by outcome", "barmode": "stack"})
    for outcome, color in OUTCOMES.items():
        heights = [counts[cache, outcome] for cache in caches]
        if any(heights):
            figure.add_bar(name=outcome, x=caches, y=heights, marker_color=color)
    return figure.update_yaxes(title="count")


def _name_cache(row: CacheLookup) -> str:
    return f"{row.cache} (remote)" if row.tier == "remote" else row.cache or "?"


def draw_phases(data: Rows, go: ModuleType) -> Figure:
    """Seconds of each phase without the phases inside it, the longest on top."""
    own = sum_own_seconds(data.rows(Phase))
    longest = sorted(own.items(), key=lambda item: item[1])[-SHOWN_PHASES:]
    figure = go.Figure(layout={"title": "Compile time by phase"})
    figure.add_bar(
        orientation="h",
        y=[name for name, _ in longest],
        x=[seconds for _, seconds in longest],
        marker_color=COLORS["compile"],
    )
    return figure.update_xaxes(title="seconds in the phase itself")


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
