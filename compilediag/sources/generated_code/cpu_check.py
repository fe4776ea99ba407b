"""torch's check of the CPU's vector instructions, as a phase: torch itself does not time it."""

from __future__ import annotations

from collections.abc import Sequence

from ...decode.records.timed_events import CPU_CHECK
from ...events import Phase
from ..hooks.columns import AttemptColumns


def make_check(time_ns: int, seconds: float, around: Sequence[str], ids: AttemptColumns) -> Phase:
    """The phase of one check, within the phases `around` of its thread."""
    parent = around[-1] if around else None
    return Phase(time_ns=time_ns, duration_s=seconds, name=CPU_CHECK, parent=parent, depth=len(around), **ids)
