"""The variants of a session: what was compiled of each function, so that another process can compile the same."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from ..events import Artifact, CacheLookup, Compile, Rows, SymbolicShape
from ..formatting import format_line, get_basename
from .evidence import Evidence, group_by, kept
from .rules.break_even import MADE

GRAPH = "dynamo_output_graph"
#: An input of a graph as torch prints it: its name and its type.
_INPUT = re.compile(r"\b(L_\w+?)_?: \"([^\"]+)\"")
#: Between the sizes and the strides of a type, and the strides.
_STRIDES = re.compile(r"(?<=\])\[[^\]]*\]")
_SYMBOL = re.compile(r"\bs\d+\b")
_PARAMETER = re.compile(r"_(?:parameters|buffers)_")
SHOWN_INPUTS = 8
#: Characters of a graph in which its inputs are looked for.
MAX_HEAD = 4 << 20


@dataclass(frozen=True)
class Variants:
    """The compiled versions of one function: how many, and how many of them have a backward or are in a cache.

    `line` is the first line of the function, `file` the name of its file without its folder.
    """

    function: str
    file: str
    line: int
    count: int
    backwards: int = 0
    stored: int = 0

    @property
    def place(self) -> tuple[str, str, int]:
        """What finds the function in another process."""
        return self.function, self.file, self.line


def list_variants(data: Rows) -> list[Variants]:
    """The variants of each function, in the order of their first compile. Of several ranks, those of the rank that has
    most: each rank compiles its own.
    """
    lookups = group_by(data.rows(CacheLookup), lambda row: row.compile_key)
    ranks = group_by(data.rows(Compile), lambda row: row.rank).values()
    compiles = [rows for own in ranks for key, rows in group_by(own, lambda row: row.compile_key).items() if key]
    made = [
        rows
        for rows in compiles
        if rows[0].trigger == "dynamo" and rows[0].graph_ops and all(row.outcome in MADE for row in rows)
    ]
    counted = [
        Variants(
            *_get_place(group[0][0]),
            count=len(group),
            backwards=sum(any(row.trigger == "lazy_backward" for row in rows) for rows in group),
            stored=sum(
                any(
                    row.cache == "aot_autograd" and row.outcome in ("hit", "saved")
                    for row in lookups.get(rows[0].compile_key, ())
                )
                for rows in group
            ),
        )
        for group in group_by(made, lambda rows: (rows[0].rank, _get_place(rows[0]))).values()
    ]
    return [
        replace(
            found[0], **{name: max(getattr(one, name) for one in found) for name in ("count", "backwards", "stored")}
        )
        for found in group_by(counted, lambda variants: variants.place).values()
    ]


def _get_place(row: Compile) -> tuple[str, str, int]:
    """What finds a function in another process; see `Variants.place`."""
    return row.function or "", get_basename(row.file or ""), row.line or 0


def list_missing(expected: Iterable[Variants], data: Rows) -> list[str]:
    """What of the expected variants `data` lacks, one line per function; empty if it has everything.

    A variant that was found in a cache comes with its backward, so none is compiled.
    """
    found = {variants.place: variants for variants in list_variants(data)}
    lines = []
    for wanted in expected:
        has = found.get(wanted.place, Variants(*wanted.place, count=0))
        is_complete = has.count >= wanted.count and has.stored >= wanted.stored
        if not is_complete or has.backwards + has.stored < wanted.backwards:
            where = f"{wanted.function} ({wanted.file}:{wanted.line})"
            lines.append(f"{where}: {has.count} of {wanted.count} compiled, {has.stored} of {wanted.stored} stored")
    return lines


def list_inputs(data: Rows) -> dict[tuple[str, str, int], list[str]]:
    """Function -> the tensors of each of its variants, from the graphs, which `full` records."""
    known = find_inputs(data)
    inputs: dict[tuple[str, str, int], list[str]] = {}
    for row in data.rows(Compile):
        if row.trigger == "dynamo" and row.compile_key in known:
            inputs.setdefault(_get_place(row), []).append(known[row.compile_key])
    return inputs


@kept
def find_inputs(evidence: Evidence) -> Mapping[str | None, str]:
    """Compile key -> the tensors that its graph takes, without parameters: `x: f32[4, 16], y: i64[4]`. A dynamic size
    has the value that it had in the call that compiled.
    """
    texts: dict[str | None, str] = {}  # Several compiles can have the same graph.
    found: dict[str | None, str] = {}
    shapes = evidence.by_compile(SymbolicShape)
    for row in evidence.rows(Artifact):
        if row.name != GRAPH or not row.digest or row.event_id is None or row.compile_key is None:
            continue
        if row.digest not in texts:
            inputs = dict.fromkeys(_INPUT.findall(evidence.read_artifact(row.event_id)[:MAX_HEAD]))
            tensors = [
                f"{name.removeprefix('L_')}: {_STRIDES.sub(' ', kind)}"
                for name, kind in inputs
                if not _PARAMETER.search(name)
            ]
            more = f", and {len(tensors) - SHOWN_INPUTS} more" if len(tensors) > SHOWN_INPUTS else ""
            texts[row.digest] = format_line(", ".join(tensors[:SHOWN_INPUTS]) + more, 110) or "no tensor inputs"
        found[row.compile_key] = _name_sizes(texts[row.digest], shapes.get(row.compile_key, ()))
    return found


def _name_sizes(inputs: str, shapes: Iterable[SymbolicShape]) -> str:
    """The inputs with the values of torch's symbols."""
    values = {shape.symbol: shape.value for shape in shapes if shape.action == "created"}
    return _SYMBOL.sub(lambda name: values.get(name[0]) or name[0], inputs)
