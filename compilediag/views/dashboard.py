"""The live dashboard of a session."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import CompilediagError
from .model import ViewModel
from .record import make_dashboard_texts

if TYPE_CHECKING:
    from ..storage.data import SessionData
    from .widget import DashboardWidget


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
