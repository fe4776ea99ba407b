"""The guard-failure explorer as a live widget: the dashboard's other page, on the same model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..dashboard import load_widget_class
from ..model import ViewModel
from ..record import make_plain_texts
from .explorer_text import format_explorer

if TYPE_CHECKING:
    from ...diagnosis import Finding
    from ...storage.data import SessionData
    from ..widget import DashboardWidget


def make_explorer(data: SessionData, finding: Finding | None = None) -> DashboardWidget:
    """Return the widget, opened at the guard behind `finding` if one is given.

    CompilediagError if anywidget is not installed.
    """
    events = [] if finding is None else list(finding.evidence)
    texts = make_plain_texts(lambda: format_explorer(data))
    return load_widget_class()(ViewModel(data), texts, page="explorer", events=events)
