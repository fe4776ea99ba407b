"""What a page asks the kernel to write: the session as a report or in a format for other tools."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import CompilediagError
from ..files import make_absolute
from ..interrupts import pass_on
from .export import export_session
from .report import write_report

if TYPE_CHECKING:
    from ..storage.data import SessionData

#: Format that a page asks for -> the end of the name of what is written; "" for a folder.
ENDINGS = {"html": ".html", "markdown": ".md", "csv": "", "parquet": "", "perfetto": ".json"}


def answer_export(data: SessionData, message: Mapping[str, Any]) -> dict[str, Any]:
    """Write what a page asks for, in the kernel's folder; the answer has the path, or the error in one line."""
    answer = {"type": "answer", "request": message.get("request")}
    try:
        return {**answer, "path": str(_write(data, str(message.get("format"))))}
    except (CompilediagError, OSError) as error:
        pass_on(error)
        return {**answer, "error": str(error)}
    except Exception as error:  # The page waits for an answer.
        pass_on(error)
        return {**answer, "error": f"{type(error).__name__}: {error}"}


def _write(data: SessionData, format: str) -> Path:
    if format not in ENDINGS:
        raise CompilediagError(f"unknown format {format!r}: use one of {', '.join(ENDINGS)}")
    write: Callable[[Path], Path] = lambda path: export_session(data, path, format)  # noqa: E731
    if format == "html":
        write = lambda path: write_report(data, path)  # noqa: E731
    return write(_choose_path(str(data.meta.get("title") or "session"), format))


def _choose_path(title: str, format: str) -> Path:
    """A name that is free: `train-20261122-143000.html`, `train-20261122-143000-csv`."""
    stem = re.sub(r"\W+", "-", Path(title).stem).strip("-")[:60] or "session"
    name = f"{stem}-{time.strftime('%Y%m%d-%H%M%S')}" + ("" if ENDINGS[format] else f"-{format}")
    folder = make_absolute(".")
    candidates = (folder / f"{name}{f'-{n}' if n else ''}{ENDINGS[format]}" for n in range(1000))
    return next(path for path in candidates if not path.exists())
