"""The plotly figures by name, for people who analyze, save and restyle. In JupyterLab they need no network."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import TYPE_CHECKING

from ...errors import CompilediagError
from ...events import Rows
from . import compile_figures, cudagraph_figures, tuning_figures
from .figure_style import TEMPLATE

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

#: Name -> function that draws the figure from a session's rows with plotly.graph_objects.
FIGURES: dict[str, Callable[[Rows, ModuleType], Figure]] = {
    "timeline": compile_figures.draw_timeline,
    "causes": compile_figures.draw_causes,
    "caches": compile_figures.draw_caches,
    "phases": compile_figures.draw_phases,
    "autotune": tuning_figures.draw_choices,
    "autotune_margins": tuning_figures.draw_margins,
    "autotune_payoff": tuning_figures.draw_payoff,
    "cudagraphs": cudagraph_figures.draw_actions,
    "cudagraphs_captures": cudagraph_figures.draw_captures,
    "cudagraphs_coverage": cudagraph_figures.draw_coverage,
    "cudagraphs_skips": cudagraph_figures.draw_skips,
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
