"""Figures of compiles: when they ran, what caused recompiles, what caches answered, where the time went."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd

if TYPE_CHECKING:
    from ...session import Session

#: The colours of the dashboard, which hold in light and dark.
COLORS = {"compile": "#4c78a8", "recompile": "#e45756"}
#: Cache outcome -> colour, in the order of the bars' parts.
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
#: Phases that hold nearly all others say nothing in a sum of phases.
OUTER_PHASES = frozenset({"dynamo", "entire_frame_compile", "entire_backward_compile"})
SHOWN_PHASES = 25


def timeline(session: Session, go: Any) -> Any:
    """A lane a function, a bar a compile; x in seconds since the first one."""
    compiles = session.compiles
    figure = go.Figure(layout={"title": "Compiles over time", "barmode": "overlay"})
    begin = compiles["time"].min()
    recompiled = compiles["is_recompile"].fillna(False).astype(bool)
    for label, color, rows in (
        ("first compile", COLORS["compile"], compiles[~recompiled]),
        ("recompile", COLORS["recompile"], compiles[recompiled]),
    ):
        figure.add_bar(
            orientation="h",
            name=label,
            marker_color=color,
            y=_lanes(rows),
            base=(rows["time"] - begin).dt.total_seconds(),
            x=rows["duration_s"],
            customdata=rows[["compile_id", "outcome", "trigger"]].astype(object).fillna(""),
            hovertemplate="%{y} %{customdata[0]}<br>%{x:.3f} s, %{customdata[1]}, %{customdata[2]}<extra></extra>",
        )
    figure.update_xaxes(title="seconds since the first compile")
    return figure.update_yaxes(autorange="reversed")


def causes(session: Session, go: Any) -> Any:
    """Seconds lost to recompiles, a bar a root cause, the dearest on top."""
    recompiles = session.recompiles
    cause = recompiles["function"].fillna("?") + ": " + recompiles["guard_source"].fillna(recompiles["guard_kind"])
    lost = recompiles.assign(cause=cause).groupby("cause")["lost_s"].agg(["sum", "size"]).sort_values("sum")
    figure = go.Figure(layout={"title": "Seconds lost to recompiles, by cause"})
    figure.add_bar(
        orientation="h",
        y=lost.index,
        x=lost["sum"],
        marker_color=COLORS["recompile"],
        customdata=lost["size"],
        hovertemplate="%{y}<br>%{x:.3f} s in %{customdata} recompiles<extra></extra>",
    )
    return figure.update_xaxes(title="seconds")


def caches(session: Session, go: Any) -> Any:
    """Look-ups and stores by cache and outcome; a remote tier is a bar of its own."""
    lookups = session.cache_lookups
    tier = lookups["tier"].where(lookups["tier"] == "remote").map(" ({})".format, na_action="ignore").fillna("")
    counts = lookups.groupby([lookups["cache"] + tier, "outcome"]).size().unstack(fill_value=0)
    figure = go.Figure(layout={"title": "Caches: what became of look-ups and stores", "barmode": "stack"})
    for outcome in sorted(counts.columns, key=list(OUTCOMES).index):
        figure.add_bar(name=outcome, x=counts.index, y=counts[outcome], marker_color=OUTCOMES[outcome])
    return figure.update_yaxes(title="times")


def phases(session: Session, go: Any) -> Any:
    """Seconds of each phase by itself, what is inside it taken off; the longest on top."""
    own = _own_seconds(session.phases)
    figure = go.Figure(layout={"title": "Where the seconds go, by phase"})
    figure.add_bar(orientation="h", y=own.index, x=own, marker_color=COLORS["compile"])
    return figure.update_xaxes(title="seconds in the phase itself")


def _own_seconds(phases: pd.DataFrame) -> pd.Series:
    who = ["pid", "compile_id"]
    inner = phases.groupby([*who, "parent"], dropna=False)["duration_s"].sum()
    total = phases.groupby([*who, "name"], dropna=False)["duration_s"].sum()
    inner.index.names = total.index.names
    own = total.sub(inner.reindex(total.index), fill_value=0).clip(lower=0)
    summed = own.groupby("name").sum()
    return summed.drop(labels=list(OUTER_PHASES), errors="ignore").nlargest(SHOWN_PHASES)[::-1]


def _lanes(compiles: pd.DataFrame) -> pd.Series:
    line = compiles["line"].astype("string")
    return compiles["function"].fillna("?") + (":" + line).fillna("")
