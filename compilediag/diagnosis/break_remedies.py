"""What removes a graph break: a setting of torch that its hints name, or a line that registers a logging function."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..events import GraphBreak
from ..formatting import format_line
from .change import CodeChange

#: Settings that let torch trace what it otherwise leaves to Python.
_SETTINGS = ("capture_scalar_outputs", "capture_dynamic_output_shape_ops")
_LOGGER = re.compile(r"(?<!\w)(?<!\w\.)((?:\w+\.)*\w+\.(?:debug|info|warning|error|critical|exception|log))\(")
_PRINT = re.compile(r"\b(print|(?:warnings\.)?warn)\(")
#: torch's words for a call with keyword arguments. When torch moves it, it drops them, or refuses from 2.15 on.
_KEYWORDS = "has_kwargs True"
_TEXTS = {
    "ignore_logging_functions": "Add the logging method to torch._dynamo.config.ignore_logging_functions.",
    "reorderable_logging_functions": "Add the function to torch._dynamo.config.reorderable_logging_functions.",
}


def find_remedy(row: GraphBreak) -> CodeChange | None:
    """The change that removes a graph break, where torch has one for it; None if the code has to be changed."""
    hints, code = " ".join(row.hints or ()), row.user_code or ""
    for name in _SETTINGS:
        if name in hints:
            return CodeChange(settings={name: True})
    if "ignore_logging_functions" in hints:
        return _register("ignore_logging_functions", _LOGGER.search(code))
    if "reorderable_logging_functions" in hints and (found := _PRINT.search(code)):
        if _KEYWORDS in (row.explanation or ""):
            return CodeChange(
                text=f"Call {found[1]} without keyword arguments, which torch drops when it moves the call."
            )
        return _register("reorderable_logging_functions", found)
    return None


def _register(setting: str, found: re.Match[str] | None) -> CodeChange:
    return CodeChange(text=f"torch._dynamo.config.{setting}.add({found[1]})" if found else _TEXTS[setting])


def describe_remedy(rows: Sequence[GraphBreak]) -> tuple[CodeChange | None, str]:
    """The change that removes these graph breaks, or None, and what to do: that change in words, or torch's hint."""
    change = next((found for row in rows if (found := find_remedy(row)) is not None), None)
    if change is not None:
        before = "Before the first compiled call: "
        return change, change.code if change.code.endswith(".") else f"{before}{change.code}."
    hints = next((row.hints for row in rows if row.hints), [])
    explanation = next((row.explanation for row in rows if row.explanation), "")
    text = format_line(hints[0] if hints else explanation, 300)
    return None, f"{text}." if text and text[-1].isalnum() else text
