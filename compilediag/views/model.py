"""Every number that a view shows is made here, once: the dashboard, the report and the text read the same model.

A model gives *patches*: JSON that says what is new since the last one. A snapshot is one patch with
everything. The browser applies patches to an empty page; the report is a page with one patch in it.
"""

from __future__ import annotations

import base64
import contextlib
import dataclasses
import json
import threading
import time
import zlib
from collections.abc import Iterable
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from ..diagnosis import FEEDS, CallTotals, diagnose, fix_code, map_collected, sum_calls
from ..diagnosis.rules.cache_misses import MISSES, list_miss_reasons
from ..events import BY_TABLE, KINDS
from ..storage.store import deflate, inflate
from ..storage.tables import table_columns
from .derived_tables import EXPLAINED, MADE_OF, PART_OF, DerivedTable, derived_columns, with_derived
from .explorer.documents import Explorer
from .explorer.source_lines import SourceLines
from .plugin_panels import panels
from .rank_page import rank_part
from .redaction import Redactor
from .totals import Totals

if TYPE_CHECKING:
    from ..diagnosis import Finding
    from ..session import Session

SCHEMA = 1
#: Findings and lost seconds need whole tables: they are worked out again at most this often, and never for
#: more than a twentieth of the time.
SLOW_INTERVAL_S = 0.5
SLOW_SHARE = 20
#: While rows stream in, findings may wait so much longer: beside a busy compiler they take half a second or more.
STREAMING_S = 2.0
#: torch's name of the artifact that holds an entry's guards.
GUARD_TREE = "dynamo_cpp_guards_str"
#: A text beyond the budget is cut to this many characters.
CUT_CHARS = 4_000
NS_PER_MS = 1_000_000


class ViewModel:
    """The view of one session. `text_budget` bounds the texts of artifacts, in bytes of base64; the longest are cut."""

    def __init__(self, session: Session, redact: bool = False, text_budget: int = 16_000_000):
        self.session = session
        self.seq = 0
        self._redactor = Redactor() if redact else None
        self._text_budget = self._whole_budget = text_budget
        self._lock = threading.RLock()
        self._seen = dict.fromkeys(BY_TABLE, 0)
        self._totals = Totals()
        self._derived = {table: DerivedTable(name) for name, table in MADE_OF.items()}
        self._sources: dict[tuple[Any, ...], tuple[int, dict[str, Any]]] = {}
        self._last_duration: dict[tuple[Any, ...], float] = {}
        self._lost: dict[int, float] = {}
        self._sent: dict[str, Any] = {}
        self._slow_due = self._explore_due = time.monotonic()
        self._last = 0
        self._dirty = True
        self._findings: list[dict[str, Any]] | None = None
        self._ranks: dict[str, Any] | None = None
        self._panels: list[dict[str, Any]] = []
        self._calls = CallTotals()
        lines = None if redact else SourceLines(own=session.state != "loaded")
        self._explorer = Explorer(session.meta.get("detail") == "full", lines)

    def patch(self) -> dict[str, Any] | None:
        """What is new since the last call; None if nothing is."""
        with self._lock, self.session.settled():
            patch = self._collect(everything=False)
            if not patch:
                return None
            self.seq += 1
            return {"seq": self.seq, "reset": False, **patch}

    def snapshot(self) -> dict[str, Any]:
        """Everything so far as one patch. Patches that were given before it are in it."""
        with self._lock, self.session.settled():
            whole = ViewModel(self.session, self._redactor is not None, self._whole_budget)
            columns = {table: _view_columns(table) for table in BY_TABLE} | derived_columns()
            feeds = with_derived({table: list(names) for table, names in FEEDS.items()})
            fixed = {"columns": columns, "feeds": feeds, "made_of": MADE_OF}
            return {"seq": self.seq, "reset": True, **fixed, **whole._collect(everything=True)}

    def _collect(self, everything: bool) -> dict[str, Any]:
        state = self.session.state
        rows = self._news(everything)
        texts, rows["trees"] = self._texts(rows["artifacts"])
        now = everything or state != "watching"
        self._reckon(rows, now)
        rows["functions"] = self._explored(now)
        parts = {
            "meta": self._meta(state),
            "totals": {**self._totals.as_dict(self._lost, self._sources.values()), **dataclasses.asdict(self._calls)},
            "observed": self._observed(),
            "now": self._now(),
            **({"findings": self._findings} if self._findings is not None else {}),
            **({"ranks": self._ranks} if self._ranks is not None else {}),
            **({"panels": self._panels} if self._panels else {}),
        }
        changed = {name: part for name, part in parts.items() if everything or self._sent.get(name) != part}
        self._sent.update(changed)
        rows.update((derived.name, derived.take()) for derived in self._derived.values())
        fresh = {table: new for table, new in rows.items() if new}
        return {**changed, **({"rows": fresh} if fresh else {}), **({"texts": texts} if texts else {})}

    # Rows

    def _news(self, everything: bool) -> dict[str, list[list[Any]]]:
        """Table -> rows that were not given yet. Only tables with news are asked: beside a busy compiler a query costs
        5 ms of waiting for the interpreter, whatever it finds.
        """
        tables = set(BY_TABLE)
        if not everything:
            self._last, kinds = self.session.news(self._last)
            tables = {cls.table for cls in KINDS if cls.kind in kinds}
        # The states of the sources come first: what rows mean depends on them.
        ordered = sorted(BY_TABLE, key=lambda table: table != "sources")
        return {table: self._new_rows(table) if table in tables else [] for table in ordered}

    def _new_rows(self, table: str) -> list[list[Any]]:
        """Rows that were not given yet, as the browser takes them: time in ms, JSON as lists, redacted if need be."""
        raw = self.session.rows(table, self._seen[table])
        if not raw:
            return []
        self._seen[table] = raw[-1][0]
        names = list(table_columns(table))
        rows = self._page_rows(table, raw)
        self._note(table, names, rows)
        return list({row[0]: row for row in rows}.values())

    def _page_rows(self, table: str, stored: Iterable[tuple[Any, ...]]) -> list[list[Any]]:
        """Stored rows as the browser takes them."""
        change = _cell_changes(table, list(table_columns(table)), self._redactor)
        rows = []
        for values in stored:
            row = list(values)
            row[1] = row[1] / NS_PER_MS
            for index, function in change:
                row[index] = function(row[index])
            rows.append(row)
        return rows

    def _note(self, table: str, names: list[str], rows: list[list[Any]]) -> None:
        for row in rows:
            cells = dict(zip(names, row, strict=True))
            self._totals.add(table, cells)
            self._explorer.note(table, cells)
            if table == "cache_lookups":
                row.append(self._explained(cells))
            if table in self._derived:
                row.append(self._derived[table].add(SimpleNamespace(**cells, time_ns=cells["time"] * NS_PER_MS)))
            if table == "compiles" and cells["duration_s"] is not None:
                self._last_duration[_who(cells)] = cells["duration_s"]
            elif table == "sources":
                # A source writes a new row when its state changes; the page keeps one, under the first one's id.
                key = (cells["rank"], cells["pid"], cells["name"])
                row[0] = self._sources.get(key, (row[0],))[0]
                self._sources[key] = (row[0], cells)

    def _explained(self, cells: dict[str, Any]) -> list[str] | None:
        """Why a look-up missed, in the words of `session.explain_miss`; None of a hit, or if they would tell values."""
        if cells["outcome"] not in MISSES or self._redactor is not None:
            return None
        states = (source for _, source in self._sources.values())
        return list_miss_reasons(
            SimpleNamespace(**cells), any(s["name"] == "keys" and s["status"] == "active" for s in states)
        )

    def _texts(self, artifacts: list[list[Any]]) -> tuple[dict[str, dict[str, Any]], list[list[Any]]]:
        """Texts within the budget, the short ones first, of the others the beginning, beyond twice the budget none; and
        guard trees, taken apart. What many ranks have alike is there once: the others name the first that has it.
        """
        if self._redactor is not None or not artifacts or not self._whole_budget:
            return {}, []
        bodies = self.session.artifact_bodies(after=artifacts[0][0] - 1, last=artifacts[-1][0])
        texts: dict[str, dict[str, Any]] = {}
        first: dict[bytes, int] = {}
        for event_id, body in sorted(bodies.items(), key=lambda item: (len(item[1]), item[0])):
            if body in first:
                texts[str(event_id)] = {"same": first[body]}
            elif self._text_budget > -self._whole_budget:
                cut = len(body) * 4 // 3 > self._text_budget
                encoded = base64.b64encode(_beginning(body) if cut else body).decode()
                self._text_budget -= len(encoded)
                texts[str(event_id)] = {"z": encoded, "cut": cut}
                first[body] = event_id
        return texts, self._trees(artifacts, bodies)

    def _trees(self, artifacts: list[list[Any]], bodies: dict[int, bytes]) -> list[list[Any]]:
        names = list(table_columns("artifacts"))
        found = []
        for row in artifacts:
            cells = dict(zip(names, row, strict=True))
            if cells["name"] == GUARD_TREE and row[0] in bodies:
                with contextlib.suppress(zlib.error, UnicodeDecodeError):  # a damaged file: the text says so itself
                    found.append(self._explorer.tree(cells, inflate(bodies[row[0]])))
        return found

    # Numbers

    def _reckon(self, rows: dict[str, list[list[Any]]], now: bool) -> None:
        """Findings and lost seconds, if there is reason to and time for it; adds the recompiles that changed."""
        self._dirty = self._dirty or any(rows[table] for table in rows if table not in ("phases", "artifacts"))
        begin = time.monotonic()
        # New rows go out first: the numbers that take longer follow in a patch of their own, if it does not get late.
        due = self._slow_due + (STREAMING_S if any(rows.values()) else 0)
        if not self._dirty or (not now and begin < due):
            return
        self._dirty = False
        tables = self.session if self._redactor is None else self._redactor.tables(self.session)
        self._findings = [_finding(found) for found in diagnose(tables)]
        self._ranks = rank_part(tables, self.session.state == "watching")
        self._panels = panels(tables)
        self._calls = sum_calls(tables)
        recompiles = tables.recompiles[["event_id", "lost_s"]].dropna()
        lost = dict(zip(recompiles["event_id"].tolist(), recompiles["lost_s"].tolist(), strict=True))
        self._add_lost(rows, {i: s for i, s in lost.items() if self._lost.get(i) != s})
        self._lost = lost
        self._slow_due = time.monotonic() + max(SLOW_INTERVAL_S, SLOW_SHARE * (time.monotonic() - begin))

    def _explored(self, now: bool) -> list[list[Any]]:
        """The explorer's documents that changed, if there is time for it: they are made quicker than findings."""
        begin = time.monotonic()
        if not now and begin < self._explore_due:
            return []
        documents = self._explorer.documents(self._lost)
        self._explore_due = time.monotonic() + max(SLOW_INTERVAL_S, SLOW_SHARE * (time.monotonic() - begin))
        return documents

    def _add_lost(self, rows: dict[str, list[list[Any]]], changed: dict[int, float]) -> None:
        if not changed:
            return
        names = list(table_columns("recompiles"))
        fresh = {row[0]: row for row in rows["recompiles"]}
        missing = [i for i in changed if i not in fresh]
        if missing:
            wanted = set(missing)
            stored = (row for row in self.session.rows("recompiles", min(missing) - 1) if row[0] in wanted)
            fresh.update((row[0], row) for row in self._page_rows("recompiles", stored))
        for event_id, seconds in changed.items():
            if event_id in fresh:
                fresh[event_id][names.index("lost_s")] = seconds
        rows["recompiles"] = list(fresh.values())

    def _meta(self, state: str) -> dict[str, Any]:
        """What is known of the session as a whole; while it is watched nothing of it changes."""
        sent = self._sent.get("meta")
        if sent is not None and state == sent["state"] == "watching":
            return sent
        meta = self.session.meta
        return {
            "schema": SCHEMA,
            "state": state,
            "title": None if self._redactor else meta.get("title"),
            "detail": meta.get("detail"),
            "started_ms": _ms(meta.get("created_ns")),
            "stopped_ms": _ms(meta.get("stopped_ns")),
            "torch": meta.get("torch_version"),
            "python": meta.get("python_version"),
            "pid": meta.get("pid"),
            "redacted": self._redactor is not None,
        }

    def _observed(self) -> dict[str, bool]:
        return with_derived(map_collected(SimpleNamespace(**cells) for _, cells in self._sources.values()))

    def _now(self) -> list[dict[str, Any]]:
        file = self._redactor.file if self._redactor else lambda path: path
        return [
            {
                **{name: state.get(name) for name in ("compile_id", "function", "line", "trigger", "phases")},
                "file": file(state.get("file")),
                "phase": state["phases"][-1] if state["phases"] else None,
                "started_ms": _ms(state.get("started_ns")),
                "before_s": self._last_duration.get(_who({**state, "file": file(state.get("file"))})),
            }
            for state in self.session.progress()
        ]


def totals(session: Session) -> dict[str, Any]:
    """The totals of a session, as every view shows them; see `Totals`."""
    with session.settled():
        return ViewModel(session, text_budget=0)._collect(everything=True)["totals"]


def _beginning(body: bytes) -> bytes:
    """The first characters of a deflated text; nothing of a damaged one."""
    try:
        return deflate(inflate(body)[:CUT_CHARS])
    except (zlib.error, UnicodeDecodeError):
        return deflate("")


def _who(cells: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(cells.get(name) for name in ("function", "file", "line", "trigger"))


def _ms(ns: int | None) -> float | None:
    return None if ns is None else ns / NS_PER_MS


def _cell_changes(table: str, names: list[str], redactor: Redactor | None) -> list[tuple[int, Any]]:
    """(index, function) of the columns whose stored cells are not what a page shows."""
    spec = table_columns(table)
    changes: list[tuple[int, Any]] = []
    for index, name in enumerate(names):
        if spec[name]["dtype"] == "json":
            changes.append((index, lambda cell: None if cell is None else json.loads(cell)))
        elif spec[name]["dtype"] == "boolean":
            changes.append((index, lambda cell: None if cell is None else bool(cell)))
        redact = redactor.cell(table, name) if redactor else None
        if redact is not None:
            changes.append((index, redact))
    return changes


def _view_columns(table: str) -> list[dict[str, str]]:
    own = [
        {"name": name, "label": name.replace("_", " "), "type": _view_type(name, spec["dtype"]), "doc": spec["doc"]}
        for name, spec in table_columns(table).items()
    ]
    return [*own, *([EXPLAINED] if table == "cache_lookups" else []), *([PART_OF] if table in MADE_OF.values() else [])]


def _view_type(name: str, dtype: str) -> str:
    if name == "event_id":
        return "id"
    by_name = {"time": "time", "file": "path", "user_file": "path", "user_code": "code", "guard": "code"}
    if name in by_name:
        return by_name[name]
    if dtype == "float64":
        return {"_us": "us", "_ms": "ms"}.get(name[-3:], "s")
    if name in ("size", "bytes", "pool_bytes"):
        return "bytes"
    return {"Int64": "int", "boolean": "bool", "json": "list"}.get(dtype, "text")


def _finding(found: Finding) -> dict[str, Any]:
    return {
        "rule": found.rule,
        "severity": found.severity,
        "title": found.title,
        "seconds_lost": found.seconds_lost,
        "count": found.count,
        "suggestion": found.suggestion,
        "fix": fix_code(found.fix),
        "function": found.function,
        "file": found.file,
        "line": found.line,
        "evidence": list(found.evidence),
        "values": [str(v) for v in found.details],
    }
