"""The browser's code, joined: hosts load one module from a blob address, where relative imports do not resolve.

Each file under `static/` is an ES module of its own, whose imports and exports stand one a line at the
top level. Joining them drops both, so every top-level name has to be unique over all files.
"""

from __future__ import annotations

import functools
import re
from pathlib import Path

STATIC = Path(__file__).parent / "static"
STYLES = ("theme.css", "header.css", "body.css", "detail.css", "where.css", "explore.css", "ranks.css")
IMPORT = re.compile(r'^import \{[^}]*\} from "\./([\w-]+\.js)";\n', re.MULTILINE)
EXPORT = re.compile(r"^export (?!default\b)", re.MULTILINE)
TOP_LEVEL_NAME = re.compile(r"^(?:export )?(?:async )?(?:function|class|const|let) (\w+)", re.MULTILINE)


@functools.cache
def module(entry: str) -> str:
    """One ES module made of `entry` (a file under `static/`) and all that it imports, in order of need."""
    return "".join(EXPORT.sub("", IMPORT.sub("", _source(name))) for name in in_order(entry))


@functools.cache
def style() -> str:
    """The style sheet."""
    return "".join(_source(name) for name in STYLES)


def in_order(entry: str, seen: tuple[str, ...] = ()) -> tuple[str, ...]:
    """The files that `entry` needs, each after those that it imports, `entry` last. `seen` are there already."""
    for name in IMPORT.findall(_source(entry)):
        if name not in seen:
            seen = in_order(name, seen)
    return (*seen, entry)


def _source(name: str) -> str:
    return (STATIC / name).read_text(encoding="utf-8")
