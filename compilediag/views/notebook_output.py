"""The output of a widget in a notebook: first the live widget, then, once the watch has ended, its record."""

from __future__ import annotations

import sys
from typing import Any

#: Hosts show this type before any other, and an error if the widget is gone.
_VIEW = "application/vnd.jupyter.widget-view+json"


def is_kernel() -> bool:
    """True in a kernel, whose outputs can be replaced; false in a terminal."""
    return getattr(_find_shell(), "kernel", None) is not None


class NotebookOutput:
    """One output. `view` is the MIME bundle of the widget itself, without any text."""

    def __init__(self, view: dict[str, Any]):
        self._view = view
        self._handle: Any = None

    def show(self, texts: dict[str, str]) -> None:
        """Show the widget, or `texts` where widgets cannot be shown."""
        self._display({**self._view, **texts})

    def finish(self, record: dict[str, str]) -> None:
        """Show a record; it replaces the output that is there.

        The widget leaves the saved output, because a host would show its own error for it once the kernel is gone.
        The living page finds the record in the host's document and takes its place there (`static/record-pages.js`).
        """
        self._display({**(self._view if _needs_view() else {}), **record})

    def _display(self, bundle: dict[str, Any]) -> None:
        from IPython.display import display

        if not is_kernel():
            display({"text/plain": bundle["text/plain"]}, raw=True)
        elif self._handle is None:
            self._handle = display(bundle, raw=True, display_id=True)
        else:
            self._handle.update(bundle, raw=True)


def _needs_view() -> bool:
    """True for hosts where the page cannot take the record's place.

    Colab shows outputs in frames that only a widget view fills. VS Code loads widgets when it sees a view, and shows
    the other types by itself if the widget is gone.
    """
    names = getattr(_find_shell(), "user_ns", {})
    return "google.colab" in sys.modules or "__vsc_ipynb_file__" in names


def _find_shell() -> Any:
    """The IPython of this process; None if there is none."""
    get_ipython = getattr(sys.modules.get("IPython"), "get_ipython", None)
    return get_ipython() if get_ipython is not None else None
