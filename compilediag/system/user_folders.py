"""The folders of the user where compilediag keeps something of a run for later ones."""

from __future__ import annotations

import os
from pathlib import Path

#: The variable that switches it off.
HISTORY, OFF = "COMPILEDIAG_HISTORY", ("off", "0", "none")


def find_user_folder(variable: str, default: str) -> Path | None:
    """The folder `compilediag` in that of an XDG variable, or in `~/default`; None for a user without a home."""
    named = os.environ.get(variable, "")
    try:
        return Path(named if os.path.isabs(named) else Path.home() / default) / "compilediag"
    except RuntimeError:
        return None


def is_history_off() -> bool:
    """True if nothing of a run is to be kept for later ones."""
    return os.environ.get(HISTORY, "").lower() in OFF
