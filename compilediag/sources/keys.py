"""What cache keys are made of: the history that all caches' look-ups of a session are told against."""

from __future__ import annotations

from ..decode.keys import KeyHistory
from ..recorder import Recorder


def history_of(recorder: Recorder) -> KeyHistory:
    """The key history that all sources of a recorder share."""
    return recorder.shared.setdefault("keys", KeyHistory())
