"""The text of a graph break as a `GraphBreak`: torch writes it for people, with fixed headings."""

from __future__ import annotations

import re

from ...events import GraphBreak
from ..call_stacks import find_code

BREAK_ID = re.compile(r"\bgb(\d{4})\b", re.IGNORECASE)
#: A graph break in a log: the user's line and the reason, then the user's stack after another heading.
LOGGED = re.compile(
    r"Graph break in user code at (?P<file>[^\n]*):(?P<line>\d{1,9})\n(?:Graph Break )?Reason: ",
)
STACK = re.compile(r"\n\n?User code traceback:\n")
#: Prefix that a log adds to the reason of a break at a call.
LED_IN = re.compile(r"Encountered graph break when attempting to trace [^\n]*:\n+")
_UP_TO_NEXT = r"(.*?)(?=^  Hint: |^  Developer debug context: |\Z)"
EXPLANATION = re.compile(rf"^  Explanation: {_UP_TO_NEXT}", re.DOTALL | re.MULTILINE)
HINT = re.compile(rf"^  Hint: {_UP_TO_NEXT}", re.DOTALL | re.MULTILINE)


def parse_graph_break(
    text: str,
    time_ns: int,
    compile_id: str | None,
    user_file: str | None = None,
    user_line: int | None = None,
    user_code: str | None = None,
    compile_key: str | None = None,
) -> GraphBreak:
    """Parse torch's reason for a break. The user's line is added if it is known."""
    break_id = BREAK_ID.search(text)
    explanation = EXPLANATION.search(text)
    hints = [_join_lines(hint) for hint in HINT.findall(text)]
    return GraphBreak(
        time_ns=time_ns,
        compile_id=compile_id,
        compile_key=compile_key,
        reason=_join_lines(text.strip().partition("\n")[0]) or None,
        break_id=f"GB{break_id[1]}" if break_id else None,
        explanation=_join_lines(explanation[1]) if explanation else None,
        hints=[h for h in hints if h] or None,
        user_file=user_file,
        user_line=user_line,
        user_code=user_code,
    )


def parse_logged_break(
    text: str, time_ns: int, compile_id: str | None, compile_key: str | None = None
) -> GraphBreak | None:
    """Parse the artifact of a break in a log.

    None for a frame that torch skips because of a break: it reports that break a second time.
    """
    found = LOGGED.match(text)
    if found is None:
        return None
    file, line = found["file"], int(found["line"])
    reason, *rest = STACK.split(text[found.end() :], maxsplit=1)
    code = find_code("".join(rest), file, line)
    reason = LED_IN.sub("", reason, count=1)
    return parse_graph_break(reason, time_ns, compile_id, file, line, code, compile_key)


def _join_lines(text: str) -> str:
    return " ".join(text.split())
