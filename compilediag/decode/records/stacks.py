"""Stacks as torch writes them into its messages, the innermost frame last."""

from __future__ import annotations

import functools
import re

_FRAME = re.compile(
    r'^\s*File "(?P<file>[^"\n]+)", line (?P<line>\d{1,9}), in [^\n]*(?:\n    (?! )(?P<code>[^\n]*))?', re.M
)
#: What is part of Python itself, such as os.environ.
FROZEN = "<frozen "
_TORCH_FILE = re.compile(r"(?:(?:site|dist)-packages|pytorch)[/\\]torch[/\\]")


@functools.lru_cache(10_000)
def is_torch_file(path: str) -> bool:
    """True for a file of an installed torch, by its path alone: a log comes from another machine."""
    return _TORCH_FILE.search(path) is not None


def _is_others(path: str) -> bool:
    """True for torch's files and for what is frozen into Python."""
    return is_torch_file(path) or path.startswith(FROZEN)


def user_frame(stack: str) -> tuple[str, int, str | None] | None:
    """File, line and text of the innermost frame outside torch: what lies below it is torch's own code, such as
    nn.Linear.forward. The innermost of all if every frame is torch's; None if there is none.
    """
    frames = list(_FRAME.finditer(stack))
    if not frames:
        return None
    frame = next((f for f in reversed(frames) if not _is_others(f["file"])), frames[-1])
    return frame["file"], int(frame["line"]), (frame["code"] or "").strip() or None


def code_at(stack: str, file: str, line: int) -> str | None:
    """The text of a line as a stack shows it; None if the line is not in it."""
    frames = (f for f in _FRAME.finditer(stack) if f["file"] == file and int(f["line"]) == line)
    return next(((f["code"] or "").strip() or None for f in frames), None)
