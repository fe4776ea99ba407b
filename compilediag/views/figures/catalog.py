"""The plotly figures by name, for people who analyse, save and restyle. In JupyterLab they need no network."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...errors import CompilediagError
from . import compile_figures, cudagraph_figures, tuning_figures

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from ...session import Session

#: What traces hold as arrays.
ARRAYS = ("x", "y", "base", "customdata", "text")
FIGURES = {
    "timeline": compile_figures.timeline,
    "causes": compile_figures.causes,
    "caches": compile_figures.caches,
    "phases": compile_figures.phases,
    "autotune": tuning_figures.autotune,
    "autotune_margins": tuning_figures.margins,
    "autotune_payoff": tuning_figures.payoff,
    "cudagraphs": cudagraph_figures.cudagraphs,
    "cudagraphs_captures": cudagraph_figures.captures,
    "cudagraphs_coverage": cudagraph_figures.coverage,
    "cudagraphs_skips": cudagraph_figures.skips,
}


def make_figure(session: Session, name: str) -> go.Figure:
    """The figure of that name. CompilediagError if there is none, or plotly is not installed."""
    if name not in FIGURES:
        raise CompilediagError(f"there is no figure {name!r}: use {', '.join(sorted(FIGURES))}")
    try:
        import plotly.graph_objects as go
    except ImportError:
        raise CompilediagError("figures need plotly: pip install plotly") from None
    figure = FIGURES[name](session, go)
    for trace in figure.data:
        _make_plain(trace)
    if not any(trace.x is not None and len(trace.x) for trace in figure.data):
        figure.add_annotation(text="nothing of it in this session", showarrow=False, font_size=14)
    figure.update_layout(template="plotly_white", margin={"l": 10, "r": 10, "t": 48, "b": 10}, legend_title_text="")
    return figure


def _make_plain(trace: Any) -> None:
    """Lists in place of arrays, which plotly would write as base64: older front ends can't read that, nor people."""
    for name in ARRAYS:
        values = getattr(trace, name, None)
        if hasattr(values, "tolist"):
            trace[name] = None  # plotly takes equal values for no change
            trace[name] = values.tolist()
