"""The live dashboard of a session, and the explorer: its other page, on the same model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import CompilediagError
from .explorer_text import format_explorer
from .model import ViewModel
from .record import make_dashboard_texts, make_plain_texts

if TYPE_CHECKING:
    from ..diagnosis import Finding
    from ..storage.data import SessionData
    from .widget import DashboardWidget


def make_explorer(data: SessionData, finding: Finding | None = None) -> DashboardWidget:
    """Return the widget, opened at the guard behind `finding` if one is given.

    CompilediagError if anywidget is not installed.
    """
    events = [] if finding is None else list(finding.evidence)
    texts = make_plain_texts(lambda: format_explorer(data))
    return load_widget_class()(ViewModel(data), texts, page="explorer", events=events)


def make_dashboard(data: SessionData) -> DashboardWidget:
    """Return the live widget of a session; CompilediagError if anywidget is not installed."""
    return load_widget_class()(ViewModel(data), make_dashboard_texts(data))


def load_widget_class() -> type[DashboardWidget]:
    """Import the widget class; CompilediagError if anywidget is not installed."""
    try:
        from .widget import DashboardWidget
    except ModuleNotFoundError as error:
        if error.name not in ("anywidget", "traitlets"):
            raise
        raise CompilediagError("the dashboard needs anywidget: pip install anywidget") from None
    return DashboardWidget
