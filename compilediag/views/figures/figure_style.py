"""The look of all figures: colors and axes that fit light and dark notebooks, and labels in words.

Renderers of plotly do not follow the notebook's theme. So the background is transparent, and every color has a contrast
of at least 3 on white and on JupyterLab's dark background. All of it is in the template: another one, such as
`figure.update_layout(template="plotly_dark")`, replaces it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from html import escape
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from ...formatting import format_function_name, format_line

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
