"""The view model: the dashboard, the explorer and the report show only what it computes.

A model makes *patches*: JSON that says what is new since the last one. A snapshot is one patch with everything. The
browser applies patches to an empty page; the report is a page with one patch in it.
"""

from __future__ import annotations

import base64
import json
import math
import threading
import time
import zlib
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import asdict, replace
from itertools import chain, islice, repeat
from typing import Any, cast

from ..decode.guards.path import format_expression
from ..decode.rank_steps import RankStep, Steps
from ..decode.records.record_kinds import GUARD_TREE
from ..diagnosis import FEEDS, CallTotals, Finding, diagnose, fix_code, map_collected, sum_calls
from ..diagnosis.evidence import Evidence, find_first, get_place, group_by, sum_known, sum_seconds
from ..diagnosis.plan import Plan, make_plan
from ..diagnosis.plan.plan import make_patch
from ..diagnosis.rank_comparison import GraphRow, RankGroup, RankRow, Ranks, list_columns
from ..diagnosis.registry import find_torch_page, load_examples
from ..events import Artifact, Compile, GuardFailure, Recompile, Rows, VllmCompile, VllmConfig, has_ranks
from ..formatting import format_function, format_line
from ..storage.data import SessionData, TableProperties
from ..storage.rows import deflate, inflate, unpack_start
from ..system import plugins
from ..system.program import describe_command, describe_try
from .explorer import ExplorerDocuments, SourceLines
from .page_rows import MADE_OF, News, PageRows, add_group_tables, get_columns, to_ms
from .page_types import (
    Cell,
    PageChangedSource,
    PageEvidence,
    PageFinding,
    PageMeta,
    PagePanel,
    PagePatch,
    PagePlan,
    PageRankGraph,
    PageRanks,
    PageRow,
    PageStepCompile,
    PageVllmParts,
    PanelTable,
    PatchParts,
    RankCell,
    RunningCompile,
    StoredText,
    VllmPart,
    VllmPiece,
    VllmRange,
    VllmText,
)
from .redaction import RedactedData, Redactor, redact_plan
from .totals import Course, Totals

#: Version of the patch format.
SCHEMA = 1
#: Findings and documents read whole tables: they are made again at most this often, and take at most a twentieth of
#: the time.
SLOW_INTERVAL_S = 0.5
SLOW_SHARE = 20
#: While rows stream in, findings wait so much longer: beside a busy compiler they take half a second or more.
STREAMING_S = 2.0
#: Tables that only the explorer and the rank page read: news in them alone do not change the findings.
_NOT_DIAGNOSED = ("phases", "artifacts", "trees")

#: function, file, line and trigger of a compile.
CompileKind = tuple[str | None, str | None, int | None, str | None]


class Pace:
    """Limits how often something slow is done: see SLOW_INTERVAL_S and SLOW_SHARE."""

    def __init__(self) -> None:
        self.due = time.monotonic()
        self._began = self.due

    def begin(self, wait_s: float = 0.0) -> bool:
        """True if it may be done now; `wait_s` puts it off."""
        self._began = time.monotonic()
        return self._began >= self.due + wait_s

    def end(self) -> None:
        """It is done: the next time depends on how long it took."""
        now = time.monotonic()
        self.due = now + max(SLOW_INTERVAL_S, SLOW_SHARE * (now - self._began))


class ViewModel:
    """The view of one session. `text_budget` bounds the texts of artifacts in bytes of base64; the longest are cut."""

    def __init__(self, data: SessionData, redact: bool = False, text_budget: int = 16_000_000):
        self.data = data
        self.seq = 0
        self._redactor = Redactor() if redact else None
        self._text_budget = text_budget
        self._lock = threading.RLock()
        self._rows = PageRows(data, self._redactor)
        self._totals = Totals()
        self._texts = TextBudget(text_budget)
        #: How long the last compile of each function took.
        self._last_s: dict[CompileKind, float] = {}
        self._diagnosed = _DiagnosedParts(data, self._redactor)
        self._explorer_pace = Pace()
        lines = None if redact else SourceLines(is_own=data.is_ours)
        self._explorer = ExplorerDocuments(data.meta.get("detail") == "full", lines)
        self._sent: PatchParts = {}

    def patch(self) -> PagePatch | None:
        """What is new since the last call; None if nothing is."""
        with self._lock, self.data.settled():
            patch = self._collect(everything=False)
            if not patch:
                return None
            self.seq += 1
            return {**patch, "seq": self.seq, "reset": False}

    def snapshot(self, text_budget: int | None = None) -> PagePatch:
        """Everything so far as one patch. It contains all patches that were made before it."""
        budget = self._text_budget if text_budget is None else text_budget
        with self._lock, self.data.settled():
            whole = ViewModel(self.data, self._redactor is not None, budget)
            whole._rows.use_ids_of(self._rows)
            return {
                **whole._collect(everything=True),
                "seq": self.seq,
                "reset": True,
                "columns": get_columns(),
                "feeds": add_group_tables({table: list(names) for table, names in FEEDS.items()}),
                "made_of": MADE_OF,
            }

    def _collect(self, everything: bool) -> PatchParts:
        state = self.data.state
        is_final = everything or state != "watching"
        news = self._rows.read(everything)
        for event in chain(news.events, news.updates, self._rows.states):
            self._explorer.add(event)
        for event in news.events:
            self._totals.add(event)
            if isinstance(event, Compile) and event.duration_s is not None:
                self._last_s[event.function, event.file, event.line, event.trigger] = event.duration_s
        for update in news.updates:
            self._totals.update_recompile(update)
        texts = self._add_texts(news)
        self._diagnosed.update(news.rows, is_final)
        if self._explorer_pace.begin() or is_final:
            if documents := self._explorer.take_changed():
                news.rows["functions"] = documents
            self._explorer_pace.end()
        parts: PatchParts = {
            **self._diagnosed.parts,
            "meta": self._make_meta(state),
            "totals": self._totals.to_dict(
                self._rows.states,
                self._diagnosed.calls,
                self._diagnosed.course if state != "watching" else replace(self._diagnosed.course, wall_s=None),
            ),
            "observed": add_group_tables(map_collected(self._rows.states)),
            "now": [self._describe_running(now) for now in self.data.progress() if now.get("started_ns") is not None],
        }
        changed = cast(PatchParts, {k: part for k, part in parts.items() if everything or self._sent.get(k) != part})
        self._sent.update(changed)
        if news.rows:
            changed["rows"] = news.rows
        if texts:
            changed["texts"] = texts
        return changed

    def _add_texts(self, news: News) -> dict[str, StoredText]:
        """The texts of new artifacts; adds the rows of the guard trees among them."""
        artifacts = [event for event in news.events if isinstance(event, Artifact)]
        if self._redactor is not None or not artifacts or not self._text_budget:
            return {}
        stored = self.data.artifact_bodies((artifacts[0].event_id or 0) - 1, artifacts[-1].event_id or 0)
        shown = {row.event_id for row in artifacts}
        bodies = {event_id: body for event_id, body in stored.items() if event_id in shown}
        # A tree is left out if it is damaged, which is reported where its text is shown, or larger than any that torch
        # writes.
        trees, free = [], MAX_TREES
        for artifact in artifacts:
            body = bodies.get(artifact.event_id or 0)
            if artifact.name == GUARD_TREE and body is not None and free > 0:
                try:
                    tree = inflate(body, MAX_TREE)
                except (zlib.error, UnicodeDecodeError):
                    free -= MAX_TREE
                    continue
                free -= len(tree)
                trees.append(self._explorer.add_tree(artifact, tree))
        if trees:
            news.rows["trees"] = trees
        return self._texts.make_texts(bodies)

    def _describe_running(self, state: dict[str, Any]) -> RunningCompile:
        file = self._redactor.replace_file(state.get("file")) if self._redactor else state.get("file")
        function, line, trigger = (state.get(name) for name in ("function", "line", "trigger"))
        phases = state.get("phases") or []
        return {
            "compile_id": state.get("compile_id"),
            "compile_key": state.get("compile_key"),
            "function": function,
            "file": file,
            "line": line,
            "trigger": trigger,
            "phases": phases,
            "phase": phases[-1] if phases else None,
            "started_ms": to_ms(state["started_ns"]),
            "before_s": self._last_s.get((function, file, line, trigger)),
        }

    def _make_meta(self, state: str) -> PageMeta:
        """What is known of the session as a whole. It does not change during a watch."""
        sent = self._sent.get("meta")
        if sent is not None and state == sent["state"] == "watching":
            return sent
        meta = self.data.meta
        # A notebook whose server does not name it has the name of the kernel's launcher.
        title = "notebook" if meta.get("title") == "ipykernel_launcher.py" else meta.get("title")
        return {
            "schema": SCHEMA,
            "state": state,
            "title": None if self._redactor else title,
            "detail": meta.get("detail"),
            "started_ms": _to_optional_ms(meta.get("created_ns")),
            "stopped_ms": _to_optional_ms(meta.get("stopped_ns")),
            "torch": meta.get("torch_version"),
            "python": meta.get("python_version"),
            "pid": meta.get("pid"),
            "compilediag": meta.get("compilediag_version"),
            "platform": meta.get("platform"),
            "command": None if self._redactor else describe_command(meta),
            "device": meta.get("device"),
            "redacted": self._redactor is not None,
        }


class _DiagnosedParts:
    """The parts of a page that need whole tables: findings and plan, ranks, vLLM, panels, totals of calls."""

    def __init__(self, data: SessionData, redactor: Redactor | None):
        self._data = data
        self._redactor = redactor
        self._pace = Pace()
        self._is_outdated = True
        self.calls = CallTotals()
        self.course = Course()
        #: Findings and plan, and ranks, vLLM and panels if there are any.
        self.parts: PatchParts = {}

    def update(self, rows: dict[str, list[PageRow]], is_final: bool) -> None:
        """Make the parts again, if there is reason to and time for it. New rows go out first, without them."""
        self._is_outdated = self._is_outdated or any(table not in _NOT_DIAGNOSED for table in rows)
        is_due = self._pace.begin(STREAMING_S if rows else 0.0)
        if not self._is_outdated or not (is_due or is_final):
            return
        self._is_outdated = False
        data = self._data if self._redactor is None else RedactedData(self._data, self._redactor)
        self.calls, self.course = sum_calls(data), Course.of(self._data)
        plan, findings = make_plan(self._data), diagnose(data)
        if self._redactor is not None:
            plan = redact_plan(plan, self._redactor, data)
            # Rules see redacted rows. Without values, the recompiles of one cause cannot be joined, so the findings of
            # those that the plan explains are left out.
            evidence = (*(step.evidence for step in plan.steps), *(cause.evidence for cause in plan.unresolved))
            planned = {event for events in evidence for event in events}
            findings = [
                f
                for f in findings
                if f.rule == "recompile_limit" or not f.evidence or not planned.issuperset(f.evidence)
            ]
        rules = sorted({finding.rule for finding in findings} | {step.rule for step in plan.steps})
        examples, pages = load_examples(), {rule: find_torch_page(rule) for rule in rules}
        self.parts = {
            "findings": [_describe_finding(finding, plan) for finding in findings],
            "plan": make_plan_page(plan, data, describe_try(self._data.meta), has_sources=self._redactor is None),
            "examples": {rule: asdict(examples[rule]) for rule in rules if rule in examples},
            "torch_docs": {rule: {"title": page.title, "url": page.url} for rule, page in pages.items() if page},
        }
        whole = None if self._redactor is None else self._data
        if ranks := make_rank_page(data, self._data.state == "watching", whole):
            self.parts["ranks"] = ranks
        if vllm := make_vllm_page(data):
            self.parts["vllm"] = vllm
        if panels := [_make_panel(plugin, data) for plugin in plugins.list_plugins("panels")]:
            self.parts["panels"] = panels
        self._pace.end()


def _to_optional_ms(time_ns: int | None) -> float | None:
    return None if time_ns is None else to_ms(time_ns)


# Findings and plan


def _describe_finding(finding: Finding, plan: Plan) -> PageFinding:
    """The finding as plain values, with the number of the step that fixes it. A link names it by its id, which is the
    fingerprint without what it begins with.
    """
    return {
        "id": finding.fingerprint.removeprefix("f-"),
        "rule": finding.rule,
        "title": finding.title,
        "seconds_recoverable": finding.seconds_recoverable,
        "is_expected": finding.is_expected,
        "count": finding.count,
        "suggestion": finding.suggestion,
        "fix": fix_code(finding.fix),
        "function": finding.function,
        "file": finding.file,
        "line": finding.line,
        "evidence": list(finding.evidence),
        "values": [str(value) for value in finding.details],
        "step": plan.find_step(finding),
        "is_cost": plan.has_cost(finding),
    }


# The plan with the lines that it changes, and the compiles that each of its steps is about

#: Compiles and values that the evidence of a step lists.
MAX_COMPILES, MAX_NAMES = 20, 3
#: Characters of a value.
MAX_VALUE = 40


def make_plan_page(plan: Plan, data: Rows, try_command: str, has_sources: bool) -> PagePlan:
    """The plan with its sources. `data` has the rows that may be shown; without `has_sources`, the user's code is
    left out.
    """
    searched = str(plan.searched.get("patch") or "") if plan.searched else ""
    sources = plan.changed_sources() if has_sources else ()
    # The texts are those of cells, which a page can replace.
    changed: list[PageChangedSource] = [
        {
            "place": source.place,
            "cell": source.cell,
            "lines": list(source.lines),
            "before": None if source.cell is None else source.before,
            "after": None if source.cell is None else source.after,
        }
        for source in sources
    ]
    evidence = Evidence.of(data)
    found: dict[str, Any] = plan.to_dict()
    for values, step in zip(found["steps"], plan.steps, strict=True):
        values["proof"] = _list_compiles(evidence, frozenset(step.evidence))
    return cast(
        PagePlan,
        {
            **found,
            "patch": searched or make_patch(sources) if has_sources else None,
            "sources": changed,
            "try_command": try_command if has_sources else "",
        },
    )


def _list_compiles(evidence: Evidence, own: Set[int]) -> PageEvidence | None:
    """The compiles of the function whose recompiles took most time; None if they are not known."""
    recompiles = [row for row in evidence.rows(Recompile) if row.event_id in own]
    if not recompiles:
        return None
    places = group_by(recompiles, lambda row: (row.rank, row.pid, *get_place(row)))
    place, rows = max(places.items(), key=lambda item: sum_seconds(row.lost_s for row in item[1]))
    recompiled = evidence.by_compile(Recompile)
    compiles = [
        (key, found)
        for key, found in evidence.by_compile(Compile).items()
        if key is not None and (found[0].rank, found[0].pid, *get_place(found[0])) == place
    ]
    failures = evidence.by_compile(GuardFailure)
    names = dict.fromkeys(format_expression(row.guard_source) for row in rows if row.guard_source)
    shown = list(names)[:MAX_NAMES]
    first_values = {format_expression(row.guard_source): row.expected for row in rows[::-1] if row.guard_source}
    listed = [
        _describe_compile(parts, recompiled.get(key, ()), failures.get(key, ()), shown, own)
        for key, parts in compiles[:MAX_COMPILES]
    ]
    if listed and listed[0]["change"] is None:
        listed[0]["values"] = [_shorten(first_values.get(name)) for name in shown]
    return {
        "function": format_function(*place[2:]),
        "names": shown,
        "compiles": listed,
        "hidden": max(0, len(compiles) - MAX_COMPILES),
    }


def _describe_compile(
    parts: Sequence[Compile],
    recompiles: Sequence[Recompile],
    failures: Sequence[GuardFailure],
    names: Sequence[str],
    own: Set[int],
) -> PageStepCompile:
    came = {format_expression(row.guard_source): row.actual for row in failures if row.guard_source}
    recompile, change = (recompiles[-1] if recompiles else None), None
    if recompile is not None:
        name = format_expression(recompile.guard_source or "") or "a guard"
        came.setdefault(name, recompile.actual)
        change = f"{format_line(name, 80)}: {_shorten(recompile.expected)} → {_shorten(recompile.actual)}"
    return {
        "event": None if recompile is None else recompile.event_id,
        "time": to_ms(parts[0].time_ns),
        "values": [_shorten(came.get(name)) for name in names],
        "change": change,
        "is_own": recompile is not None and recompile.event_id in own,
        "seconds": sum_seconds(row.duration_s for row in parts),
    }


def _shorten(value: str | None) -> str:
    return "" if value is None else format_line(value, MAX_VALUE)


# Ranks

#: Ranks and compiles that are shown; the page also has their total numbers.
MAX_RANKS, MAX_GRAPHS = 64, 300


def make_rank_page(data: Rows, is_live: bool, whole: Rows | None) -> PageRanks | None:
    """The part of a patch for the page "Ranks"; None if the session has fewer than two ranks.

    Of many ranks it has one of each group, then those that diverge, then those that compiled longest. `whole`: see
    `Ranks`.
    """
    if not has_ranks(data):
        return None
    found = Ranks(data, is_live, whole)
    steps, ranks, groups, graphs = found.steps, found.rows, found.group_rows, found.graph_rows
    first = {group.rank for group in groups}
    ordered = sorted(ranks, key=lambda row: (row.rank not in first, row.first_difference is None))
    shown = sorted(row.rank for row in ordered[:MAX_RANKS])
    return {
        "count": steps.count,
        "loaded": sorted(steps)[:MAX_RANKS] if steps.is_grouped else [],
        "shown": shown,
        "group_count": len(groups),
        "graph_count": len(graphs),
        "differences": [
            {"kind": one.kind, "sentence": one.sentence, "evidence": list(one.evidence), "order": one.position}
            for one in found.divergences
        ],
        "ranks": [_get_cells(row) for row in ranks[:MAX_RANKS]],
        "groups": [{**_get_cells(row), "ranks": row.ranks[:MAX_RANKS]} for row in groups[:MAX_RANKS]],
        "graphs": [_describe_graph(row, shown, steps) for row in graphs[:MAX_GRAPHS]],
    }


def _get_cells(row: RankRow | RankGroup | GraphRow) -> dict[str, Any]:
    return {name: getattr(row, name) for name in list_columns(type(row))}


def _describe_graph(row: GraphRow, shown: list[int], steps: Steps) -> PageRankGraph:
    """A compile with a cell for each shown rank; None for a rank that did not compile it."""
    own = {**_get_cells(row), "ranks": len(row.ranks), "missing": row.missing[:MAX_RANKS], "missed": len(row.missing)}
    cells = []
    for rank in shown:
        step = row.steps.get(steps.like[rank])
        cells.append(None if step is None else _describe_step(step, row.seconds.get(rank)))
    return cast(PageRankGraph, {**own, "cells": cells})


def _describe_step(step: RankStep, seconds: float | None) -> RankCell:
    guard = step.recompile
    return {
        "seconds": seconds,
        "caches": step.letters,
        "guard": format_expression(guard.guard_source) if guard and guard.guard_source else None,
        "expected": guard.expected if guard else None,
        "actual": guard.actual if guard else None,
        "collectives": list(step.collectives[:MAX_RANKS]),
    }


# vLLM

#: Parts and pieces that are shown; the page also has their total numbers.
MAX_PARTS, MAX_PIECES, MAX_RANGES = 32, 300, 40
#: The texts of a whole part: the graph and the code that call all pieces.
TEXTS = ("vllm_piecewise_split_graph", "vllm_execution_code")
#: Fields of a configuration that can differ between the ranks of one job.
_OWN = ("time_ns", "compile_id", "compile_key", "duration_s", "rank", "pid", "event_id")


class _Part:
    """The rows of one part on one rank."""

    def __init__(self, config: VllmConfig, compiles: Sequence[VllmCompile]):
        self.config = config
        self.compiles = compiles
        self.seconds = sum_known(row.duration_s for row in compiles)
        self.settings = {name: value for name, value in asdict(config).items() if name not in _OWN}
        #: Equal on all ranks that compile the part in the same way.
        self.signature = repr((self.settings, [(row.piece, row.range_start, row.range_end) for row in compiles]))


def make_vllm_page(data: Rows) -> PageVllmParts | None:
    """The part of a patch for the page "vLLM"; None if vLLM compiled nothing."""
    configs, rows = data.rows(VllmConfig), data.rows(VllmCompile)
    if not configs:
        return None
    by_key = group_by(sorted(rows, key=lambda row: row.time_ns), lambda row: row.compile_key)
    alike = group_by((_Part(config, by_key.get(config.compile_key, ())) for config in configs), lambda p: p.signature)
    texts = group_by(data.rows(Artifact), lambda row: row.compile_key)
    shown = [_describe_part(parts, texts) for parts in list(alike.values())[:MAX_PARTS]]
    return {"count": len(alike), "compiles": len(rows), "parts": shown}


def _describe_part(parts: Sequence[_Part], texts: Mapping[str | None, Sequence[Artifact]]) -> VllmPart:
    slowest = max(parts, key=lambda part: part.seconds or 0)
    config, compiles = slowest.config, slowest.compiles
    by_sizes, by_piece = group_by(compiles, _get_sizes), group_by(compiles, lambda row: row.piece or "?")
    # The single sizes, then the ranges, in order.
    sizes = sorted(by_sizes, key=lambda size: (size[0] != size[1], size[0] or 0, size[1] or 0))[:MAX_RANGES]
    has_graphs = config.cudagraph_mode != "NONE"
    ranges: list[VllmRange] = [
        {
            "start": each[0],
            "end": each[1],
            "is_cudagraph_size": has_graphs and any(row.is_cudagraph_size for row in by_sizes[each]),
            "seconds": sum_known(row.duration_s for row in by_sizes[each]),
        }
        for each in sizes
    ]
    pieces: list[VllmPiece] = []
    for name, rows in list(by_piece.items())[:MAX_PIECES]:
        seconds = {each: sum_known(row.duration_s for row in own) for each, own in group_by(rows, _get_sizes).items()}
        pieces.append(
            {
                "name": name,
                "graph_ops": find_first(row.graph_ops for row in rows),
                "seconds": sum_known(row.duration_s for row in rows),
                "cells": [{"seconds": seconds[each]} if each in seconds else None for each in sizes],
            }
        )
    return {
        "ranks": sorted({part.config.rank for part in parts if part.config.rank is not None}),
        "rank": config.rank,
        "compile_id": config.compile_id,
        "config": slowest.settings,
        "compiles": len(compiles),
        "seconds": slowest.seconds,
        "piece_count": len(by_piece),
        "ranges": ranges,
        "pieces": pieces,
        "texts": _list_texts(texts.get(config.compile_key, ()), by_piece),
    }


def _get_sizes(row: VllmCompile) -> tuple[int | None, int | None]:
    """Smallest and largest size."""
    return row.range_start, row.range_end


def _list_texts(texts: Iterable[Artifact], pieces: Iterable[str]) -> list[VllmText]:
    names = dict.fromkeys((*TEXTS, *(f"vllm_{piece}" for piece in islice(pieces, MAX_PIECES))))
    found: dict[str, VllmText] = {}
    for row in texts:
        if row.name in names and row.event_id is not None:
            found[row.name] = {"event_id": row.event_id, "name": row.name, "size": row.size}
    return [found[name] for name in names if name in found]


# Panels of plug-ins: tables that the page shows in tabs of their own

#: Larger panels are cut, and a note says so.
MAX_ROWS, MAX_COLUMNS, MAX_CHARS = 5_000, 20, 2_000


def _make_panel(plugin: plugins.Plugin, data: TableProperties) -> PagePanel:
    """The panel of a plug-in. `data` has the DataFrames of the session, redacted if need be."""
    found: PanelTable | None = plugin.call(validate_panel, data)
    table = found or PanelTable(columns=[], rows=[], note=f"{plugin.subject}: {plugin.reason}")
    return {"name": f"panel:{plugin.name}", "label": plugin.name.replace("_", " "), **table}


def validate_panel(result: Any) -> PanelTable:
    """The result of a plug-in as a table, cut to the limits. ValueError or TypeError if it is no table."""
    columns = [str(name)[:100] for name in result["columns"]][:MAX_COLUMNS]
    if not columns or isinstance(result["columns"], str):
        raise ValueError("a panel needs a list of columns")
    rows = [
        [_convert_cell(cell) for cell in islice(chain(row, repeat(None)), len(columns))]
        for row in islice(result["rows"], MAX_ROWS + 1)
    ]
    is_cut = len(rows) > MAX_ROWS
    return {"columns": columns, "rows": rows[:MAX_ROWS], "note": f"the first {MAX_ROWS} rows" if is_cut else None}


def _convert_cell(cell: Any) -> Cell:
    if hasattr(cell, "item") and getattr(cell, "ndim", 0) == 0:
        cell = cell.item()  # A number of numpy, as DataFrames have it.
    if cell is None or isinstance(cell, bool | int):
        return cell
    if isinstance(cell, float):
        return cell if math.isfinite(cell) else None
    text = str(cell)
    return None if text in ("<NA>", "NaT") else text[:MAX_CHARS]


# Texts of artifacts, which stay compressed, as the session stores them

#: A text beyond the budget is cut to so many characters.
CUT_CHARS = 4_000
#: Bytes of a guard tree, and of all that are added at once.
MAX_TREE, MAX_TREES = 16 << 20, 512 << 20


class TextBudget:
    """Bounds the texts of a page to `size` bytes of base64."""

    def __init__(self, size: int):
        self._size = self._free = size

    def make_texts(self, bodies: Mapping[int, bytes]) -> dict[str, StoredText]:
        """The texts of these artifacts, the short ones first; beyond the budget only their beginnings, beyond twice
        the budget none. A text that several artifacts have is there once.
        """
        texts: dict[str, StoredText] = {}
        first: dict[bytes, int] = {}
        for event_id, body in sorted(bodies.items(), key=lambda item: (len(item[1]), item[0])):
            if body in first:
                texts[str(event_id)] = {"same": first[body]}
            elif self._free > -self._size:
                is_cut = len(body) * 4 // 3 > self._free
                encoded = base64.b64encode(_cut(body) if is_cut else body).decode()
                self._free -= len(encoded)
                texts[str(event_id)] = {"z": encoded, "cut": is_cut}
                first[body] = event_id
        return texts


def _cut(body: bytes) -> bytes:
    """The first characters of a deflated text; nothing of a damaged one."""
    try:
        return deflate(unpack_start(body, 4 * CUT_CHARS).decode(errors="ignore")[:CUT_CHARS].encode())
    except zlib.error:
        return deflate(b"")


# JSON that is safe inside a script element and in a kernel message, whatever text it holds

#: These could end a script element or begin a comment in it. JSON reads the escapes back.
ESCAPES = {"&": "\\u0026", "<": "\\u003c", ">": "\\u003e"}


def dumps(obj: Any) -> str:
    """Return `obj` as ASCII JSON without `&`, `<` and `>`. NaN and infinities become null; lone surrogates survive."""
    try:
        text = json.dumps(obj, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    except ValueError:
        text = json.dumps(_replace_non_finite(obj), ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    for char, escape in ESCAPES.items():
        text = text.replace(char, escape)
    return text


def _replace_non_finite(obj: Any) -> Any:
    if isinstance(obj, float):
        return obj if math.isfinite(obj) else None
    if isinstance(obj, dict):
        return {key: _replace_non_finite(value) for key, value in obj.items()}
    if isinstance(obj, list | tuple):
        return [_replace_non_finite(value) for value in obj]
    return obj
