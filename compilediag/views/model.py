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
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from itertools import chain, islice, repeat
from typing import TYPE_CHECKING, Any, cast

from ..decode.records.record_kinds import GUARD_TREE
from ..diagnosis import FEEDS, CallTotals, diagnose, fix_code, map_collected, sum_calls
from ..diagnosis.plan import make_plan
from ..diagnosis.registry import find_torch_page, load_examples
from ..events import Artifact, Compile
from ..storage.table_properties import TableProperties
from ..storage.texts import deflate, inflate, unpack_start
from ..system import plugins
from ..system.program import describe_command, describe_try
from .explorer import ExplorerDocuments, SourceLines
from .page_parts import make_plan_page, make_rank_page, make_vllm_page
from .page_rows import MADE_OF, News, PageRows, add_group_tables, get_columns, to_ms
from .page_types import (
    Cell,
    PageFinding,
    PageMeta,
    PagePanel,
    PagePatch,
    PageRow,
    PanelTable,
    PatchParts,
    RunningCompile,
    StoredText,
)
from .redaction import RedactedData, Redactor, redact_plan
from .totals import Course, Totals

if TYPE_CHECKING:
    from ..diagnosis import Finding
    from ..diagnosis.plan import Plan
    from ..storage.data import SessionData

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
        self._add_events(news)
        texts = self._add_texts(news)
        self._diagnosed.update(news.rows, is_final)
        if documents := self._make_documents(is_final):
            news.rows["functions"] = documents
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

    def _add_events(self, news: News) -> None:
        for event in news.events:
            self._totals.add(event)
            self._explorer.add(event)
            if isinstance(event, Compile) and event.duration_s is not None:
                self._last_s[event.function, event.file, event.line, event.trigger] = event.duration_s
        for update in news.updates:
            self._totals.update_recompile(update)
            self._explorer.add(update)
        for state in self._rows.states:
            self._explorer.add(state)

    def _add_texts(self, news: News) -> dict[str, StoredText]:
        """The texts of new artifacts; adds the rows of the guard trees among them."""
        artifacts = news.artifacts
        if self._redactor is not None or not artifacts or not self._text_budget:
            return {}
        stored = self.data.artifact_bodies((artifacts[0].event_id or 0) - 1, artifacts[-1].event_id or 0)
        shown = {row.event_id for row in artifacts}
        bodies = {event_id: body for event_id, body in stored.items() if event_id in shown}
        if trees := make_tree_rows(artifacts, bodies, self._explorer):
            news.rows["trees"] = trees
        return self._texts.make_texts(bodies)

    def _make_documents(self, is_final: bool) -> list[PageRow]:
        """The explorer's documents that changed, if there is time for them."""
        if not self._explorer_pace.begin() and not is_final:
            return []
        documents = self._explorer.take_changed()
        self._explorer_pace.end()
        return documents

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
            findings = _leave_out_planned(findings, plan)
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


def _leave_out_planned(findings: Sequence[Finding], plan: Plan) -> list[Finding]:
    """The findings of a redacted page: without those of recompiles that the plan explains.

    Rules see redacted rows. Without values, the recompiles of one cause cannot be joined.
    """
    evidence = (*(step.evidence for step in plan.steps), *(cause.evidence for cause in plan.unresolved))
    planned = {event for events in evidence for event in events}
    return [f for f in findings if f.rule == "recompile_limit" or not f.evidence or not planned.issuperset(f.evidence)]


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


def make_tree_rows(
    artifacts: Sequence[Artifact], bodies: Mapping[int, bytes], explorer: ExplorerDocuments
) -> list[list[Any]]:
    """The rows of the guard trees among the artifacts. A tree is left out if it is damaged, which is reported where its
    text is shown, or larger than any that torch writes.
    """
    rows, free = [], MAX_TREES
    for artifact in artifacts:
        body = bodies.get(artifact.event_id or 0)
        if artifact.name == GUARD_TREE and body is not None and free > 0:
            try:
                tree = inflate(body, MAX_TREE)
            except (zlib.error, UnicodeDecodeError):
                free -= MAX_TREE
                continue
            free -= len(tree)
            rows.append(explorer.add_tree(artifact, tree))
    return rows


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
