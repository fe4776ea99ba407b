"""Why a cache missed: the components of the key, told against those of the nearest earlier key."""

from __future__ import annotations

import re
from collections import defaultdict, deque
from collections.abc import Iterable

from ..events import CacheLookup

COMPONENT = re.compile(r"\[(?P<digest>\w+)\] (?P<name>[^:]*): (?P<value>.*)", re.DOTALL)
#: Keys whose components are remembered for the comparison, each cache for itself.
REMEMBERED = 64
#: A value in a difference is cut to this many characters.
VALUE_CHARS = 200


class KeyHistory:
    """The components of the latest keys, to say in which of them a missed key differs from the nearest."""

    def __init__(self) -> None:
        self._seen: dict[str, deque[tuple[str, dict[str, str]]]] = defaultdict(lambda: deque(maxlen=REMEMBERED))

    def compare(self, lookup: CacheLookup, components: Iterable[str]) -> CacheLookup:
        """`lookup`, told against the nearest earlier key of its cache if it missed; its own is remembered."""
        now = parse_components(components)
        if lookup.key is None or not now:
            return lookup
        earlier = self._seen[lookup.cache or ""]
        others = [(key, then) for key, then in earlier if key != lookup.key]
        if lookup.outcome in ("miss", "guard_miss") and others:
            differing = [(_differing(then, now), key, then) for key, then in others]
            names, lookup.nearest_key, then = min(reversed(differing), key=lambda d: len(d[0]))
            lookup.key_diff = [_difference(n, then.get(n), now.get(n)) for n in names]
        earlier.append((lookup.key, now))
        return lookup


def parse_components(components: Iterable[str]) -> dict[str, str]:
    """name -> value of the lines that a key is hashed from, `[digest] name: value`."""
    found = (COMPONENT.match(line) for line in components)
    return {match["name"]: match["value"] for match in found if match}


def _differing(then: dict[str, str], now: dict[str, str]) -> list[str]:
    return [n for n in {**then, **now} if then.get(n) != now.get(n)]


def _difference(name: str, old: str | None, new: str | None) -> str:
    """`name: old -> new`; of texts of many lines (a graph) the first line that differs."""
    old_lines, new_lines = (old or "").split("\n"), (new or "").split("\n")
    if old is not None and new is not None and max(len(old_lines), len(new_lines)) > 1:
        pairs = zip(old_lines, new_lines, strict=False)
        differing = next(((a, b) for a, b in pairs if a != b), (f"{len(old_lines)} lines", f"{len(new_lines)} lines"))
        old, new = (text.strip() for text in differing)
    return f"{name}: {_cut(old)} -> {_cut(new)}"


def _cut(value: str | None) -> str:
    if value is None:
        return "(absent)"
    return value if len(value) <= VALUE_CHARS else value[: VALUE_CHARS - 3] + "..."
