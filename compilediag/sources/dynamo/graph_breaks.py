"""Graph breaks: torch makes one reason a break, with the user's stack."""

from __future__ import annotations

import time
from typing import Any

from ...decode.records.graph_break_text import parse_graph_break
from ...recording import Made
from .. import _compat
from ..hooks.patching import Args, Kwargs, Patch, Raised
from ..hooks.source import Source, made


class GraphBreaks(Source):
    name = "graph_breaks"

    @classmethod
    def probe(cls) -> None:
        _compat.graph_break_reason()

    def patches(self) -> list[Patch]:
        return [Patch(_compat.graph_break_reason(), "__post_init__", self._made, self.guarded)]

    def _made(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        reason = args[0]
        if reason.graph_break:
            stack = list(reason.user_stack or ())
            text = str(reason.reason)
            if text.startswith(_compat.JUMP):
                text = _compat.jump_text() or text
            self.emit(_break, text, stack[-1:], time.time_ns(), _compat.current_compile_id())


def _break(text: str, user: list[Any], time_ns: int, compile_id: str | None) -> Made:
    """Reading the user's line opens a file, so it is done here, in the writer's thread."""
    if not user:
        return made(parse_graph_break(text, time_ns, compile_id))
    return made(parse_graph_break(text, time_ns, compile_id, user[0].filename, user[0].lineno, user[0].line))
