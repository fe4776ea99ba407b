"""The static timeline: a table with one row per function, and its compiles as a small picture.

Every text is HTML, so it has the colors of the page that it is in. Only the bars are SVG, in an `img`: JupyterLab and
GitHub remove inline SVG. Their colors have a contrast of at least 3:1 on white as well as on black, and recompiles are
lower than first compiles, so color is not the only sign.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from html import escape

from ...events import Compile
from ...formatting import format_amount, format_function, format_line, format_seconds

#: px
WIDTH, HEIGHT, LOW = 320, 16, 9
#: Kind of bar -> its color.
COLORS = {"first": "#4f7fd6", "recompile": "#c9761f", "failed": "#d64550"}
#: Compiles that the text of a picture lists.
DESCRIBED = 6
#: Characters of a function's name and place.
MAX_NAME = 100
_SVG = (
    "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {width} {height}' width='{width}' height='{height}'>"
    "{shapes}</svg>"
)
_LEFT = ' style="text-align:left"'


@dataclass
class _Lane:
    """The compiles of one function."""

    name: str
    compiles: list[Compile] = field(default_factory=list)

    @property
    def seconds(self) -> float:
        return sum(row.duration_s or 0 for row in self.compiles)


def format_timeline(compiles: Sequence[Compile], limit: int) -> str:
    """The timeline as HTML; the `limit` functions that took most time, in the order of their first compile."""
    if not compiles or not limit:
        return ""
    lanes = _make_lanes(compiles)
    costs = sorted(lanes, key=lambda lane: -lane.seconds)
    shown = {id(lane) for lane in costs[:limit]}
    begin_ns = min(row.time_ns for row in compiles)
    span_s = max((row.time_ns - begin_ns) / 1e9 + (row.duration_s or 0) for row in compiles)
    rows = "".join(_format_lane(lane, begin_ns, span_s) for lane in lanes if id(lane) in shown)
    rest = len(lanes) - len(shown)
    more = f"<p>{format_amount(rest, 'function')} with less compile time not shown.</p>" if rest else ""
    head = "".join(
        f"<th{_LEFT}>{text}</th>"
        for text in ("Function", f"Compiles over {format_seconds(span_s)}: {_format_legend(compiles)}", "Compile time")
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>{more}"


def _make_lanes(compiles: Iterable[Compile]) -> list[_Lane]:
    lanes: dict[object, _Lane] = {}
    for row in sorted(compiles, key=lambda row: row.time_ns):
        key = (row.rank, row.function, row.file, row.line)
        if key not in lanes:
            lanes[key] = _Lane(format_line(format_function(row.function, row.file, row.line), MAX_NAME))
        lanes[key].compiles.append(row)
    return list(lanes.values())


def _format_legend(compiles: Iterable[Compile]) -> str:
    words = {"first": "first compile", "recompile": "recompile (lower)", "failed": "failed"}
    kinds = {_get_kind(row) for row in compiles}
    return ", ".join(f"{_format_image(_draw(kind, [(0, 9)]), 9, '')} {words[kind]}" for kind in words if kind in kinds)


def _get_kind(row: Compile) -> str:
    if row.outcome not in (None, "ok"):
        return "failed"
    return "recompile" if row.is_recompile else "first"


def _format_lane(lane: _Lane, begin_ns: int, span_s: float) -> str:
    bars: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for row in lane.compiles:
        bars[_get_kind(row)].append(_place_bar(row, begin_ns, span_s))
    shapes = f"<path d='M0 {HEIGHT - 1}h{WIDTH}v1H0z' fill='#888'/>" + "".join(
        _draw(kind, _merge(bars[kind])) for kind in COLORS if bars[kind]
    )
    amount = f"{format_seconds(lane.seconds)} in {format_amount(len(lane.compiles), 'compile')}"
    image = _format_image(shapes, WIDTH, _describe(lane, begin_ns))
    return f"<tr><td{_LEFT}>{escape(lane.name)}</td><td{_LEFT}>{image}</td><td{_LEFT}>{amount}</td></tr>"


def _place_bar(row: Compile, begin_ns: int, span_s: float) -> tuple[int, int]:
    """First and last px of a compile; it is at least 2 px wide."""
    start_s = (row.time_ns - begin_ns) / 1e9
    scale = (WIDTH - 2) / span_s if span_s > 0 else 0
    first = int(start_s * scale)
    return first, max(first + 2, int((start_s + (row.duration_s or 0)) * scale))


def _merge(bars: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Bars that touch become one, so a picture has at most 107 of a kind."""
    merged: list[tuple[int, int]] = []
    for first, last in sorted(bars):
        if merged and first <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(merged[-1][1], last)
        else:
            merged.append((first, last))
    return merged


def _draw(kind: str, bars: Iterable[tuple[int, int]]) -> str:
    high = LOW if kind == "recompile" else HEIGHT - 2
    path = "".join(f"M{first} {HEIGHT - 1 - high}h{last - first}v{high}H{first}z" for first, last in bars)
    return f"<path d='{path}' fill='{COLORS[kind]}'/>"


def _format_image(shapes: str, width: int, text: str) -> str:
    svg = _SVG.format(width=width, height=HEIGHT, shapes=shapes)
    source = svg.replace("%", "%25").replace("#", "%23").replace("<", "%3C").replace(">", "%3E")
    return f'<img src="data:image/svg+xml,{source}" width="{width}" height="{HEIGHT}" alt="{escape(text)}">'


def _describe(lane: _Lane, begin_ns: int) -> str:
    """When each compile began and how long it took, for those who do not see the picture."""
    words = {"first": "compile", "recompile": "recompile", "failed": "failed compile"}
    listed = [
        f"{words[_get_kind(row)]} after {format_seconds((row.time_ns - begin_ns) / 1e9)}: "
        f"{format_seconds(row.duration_s)}"
        for row in lane.compiles[:DESCRIBED]
    ]
    rest = len(lane.compiles) - len(listed)
    return "; ".join(listed) + (f"; and {rest} more" if rest else "")
