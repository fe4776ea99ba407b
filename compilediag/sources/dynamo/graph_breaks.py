"""Graph breaks: torch creates one reason per break, with the user's stack."""

from __future__ import annotations

from typing import Any

from ... import clock
from ...decode.records.graph_break_text import parse_graph_break
from ..hooks.patches import Args, Kwargs, Patch, Raised
from ..hooks.sink import Made
from ..hooks.source import Source
from . import torch_api


class GraphBreaks(Source):
    name = "graph_breaks"
    needs = (torch_api.GRAPH_BREAK, torch_api.COMPILE_CONTEXT)

    def patches(self) -> list[Patch]:
        return [self.watch(torch_api.GRAPH_BREAK, self._broke)]

    def _broke(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        reason = args[0]
        if reason.graph_break:
            stack = list(reason.user_stack or ())
            text = str(reason.reason)
            if text.startswith(torch_api.JUMP):
                text = torch_api.jump_text() or text
            self.emit(_make_row, text, stack[-1:], clock.now_ns(), *self.context.keys.current())


def _make_row(text: str, user: list[Any], time_ns: int, compile_id: str | None, key: str | None) -> Made:
    """To read the user's line a file is opened, so this runs in the writer's thread."""
    file, line, source = (user[0].filename, user[0].lineno, user[0].line) if user else (None, None, None)
    return (parse_graph_break(text, time_ns, compile_id, file, line, source, compile_key=key),)
