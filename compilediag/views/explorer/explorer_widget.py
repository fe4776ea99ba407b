"""The guard-failure explorer as a live widget: the dashboard's other page, on the same model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..model import ViewModel
from .explorer_text import explorer_text

if TYPE_CHECKING:
    import anywidget

    from ...diagnosis import Finding
    from ...session import Session


def make_explorer(session: Session, finding: Finding | None = None) -> anywidget.AnyWidget:
    """The widget, opened at the guard behind `finding` if one is given; CompilediagError without anywidget."""
    from ..dashboard import widget_class

    events = [] if finding is None else list(finding.evidence)
    return widget_class()(ViewModel(session), text=explorer_text, page="explorer", events=events)
