"""Where compile time goes even if nothing recompiles: one cost, in seconds, and what to do about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..formatting import format_place
from .evidence import Place

#: What a `kind` can name. `next_process`: what the next process pays again; `repeated_blocks`: identical blocks of one
#: graph, compiled one by one; `repeated_compiles`: the same graph, compiled again for each module; `unused_backward`:
#: a backward prepared although none ran; `cpu_check`: torch's check of the CPU's vector instructions; `tuning`: tuning
#: that gained little; `used_once`: entries that were called once.
COST_KINDS = (
    "next_process",
    "repeated_blocks",
    "repeated_compiles",
    "unused_backward",
    "cpu_check",
    "tuning",
    "used_once",
)


@dataclass(frozen=True)
class CompileCost:
    """Compile time that is spent without a recompile.

    `seconds` (s) is what the advice saves, or, for "next_process", what is paid again. `what` is one sentence without a
    period, `advice` what to do, `code` the lines to paste if there are any. `details` has one line per compile or
    reason. `place` is the function, if there is only one. `evidence` holds event ids.
    """

    kind: str
    seconds: float
    what: str
    advice: str
    evidence: tuple[int, ...]
    code: str | None = None
    details: tuple[str, ...] = ()
    place: Place = (None, None, None)

    def to_dict(self) -> dict[str, Any]:
        """The cost as plain JSON values."""
        function, file, line = self.place
        return {
            **{name: getattr(self, name) for name in ("kind", "seconds", "what", "advice", "code")},
            "function": function,
            "file": file,
            "line": line,
            "place": format_place(file, line),
            "details": [*self.details],
            "evidence": [*self.evidence],
        }
