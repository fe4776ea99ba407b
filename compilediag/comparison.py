"""The comparison of two sessions, `cd.diff`, of two starts with warm and cold caches, `cd.coldstart`, and of a session
with a baseline.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .decode.cache_keys import KEY, LOGGED, read_keys
from .diagnosis.cold_start import ColdCause, ColdStart, Start, compare_starts
from .diagnosis.diff import Change, find_changes, find_uncompared
from .diagnosis.evidence import get_place
from .diagnosis.gate import Baseline, accept, format_baseline, parse_baseline
from .document import Block, Code, Items, Para, Section, shorten_items, to_html, to_text
from .errors import WrongInput
from .events import Artifact, Compile, RowList
from .events.words import describe_code
from .formatting import format_amount, format_first_line, format_function, format_line, format_names, format_seconds
from .logs.inputs import InputKind, check_input, identify_input
from .session import Session, load_any
from .storage.data import SessionData
from .system.files import OutputKind, check_output, write_file
from .system.interrupts import ignore

if TYPE_CHECKING:
    import pandas as pd

    from .views.json_documents import DiffDocument

#: Changes of each group that are listed.
SHOWN = 20
#: Names that one line lists.
SHOWN_FUNCTIONS = 5
DTYPES = {"worse": "boolean", "seconds_more": "float64", "line": "Int64"}
LISTS = ("evidence_before", "evidence_after")

#: An existing file that is not one was refused when it was read.
BASELINE = OutputKind("a baseline of compilediag", lambda file: True)


def diff(before: Session | str | os.PathLike[str], after: Session | str | os.PathLike[str]) -> Diff:
    """Compare two sessions: what is new, gone or changed in `after`.

    Args:
        before: a session, a session file, a folder of session files, or TORCH_TRACE logs.
        after: the same, of the run to compare.
    """
    sessions = (one if isinstance(one, Session) else load_any(one) for one in (before, after))
    return Diff(*sessions)


class Diff:
    """The differences of two sessions; `changes` lists them, regressions first."""

    def __init__(self, before: Session, after: Session):
        self.before = before
        self.after = after
        self.changes: list[Change] = find_changes(before.data, after.data)
        self.uncompared = find_uncompared(before.data, after.data)

    @property
    def frame(self) -> pd.DataFrame:
        """One row per change: kind, change, title, before, after, seconds_more, worse, evidence (event ids), place, and
        the fingerprint of the finding on its cause.
        """
        import pandas as pd

        columns = {}
        for field in dataclasses.fields(Change):
            cells = [getattr(change, field.name) for change in self.changes]
            if field.name in LISTS:
                columns[field.name] = pd.Series([list(cell) for cell in cells], dtype=object)
            else:
                columns[field.name] = pd.Series(cells, dtype=DTYPES.get(field.name, "string"))
        return pd.DataFrame(columns)

    def __repr__(self) -> str:
        worse = sum(change.worse is True for change in self.changes)
        return f"<compilediag diff: {format_amount(len(self.changes), 'change')}, {worse} worse>"

    def _repr_html_(self) -> str:
        return to_html(self._describe())

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(self.summary())

    def summary(self) -> str:
        """The differences as plain text, the most expensive ones first."""
        return f"{to_text(self._describe(), width=None)}\n"

    def totals(self) -> list[str]:
        """The totals of both sessions, one text per line."""
        from .views.totals import compute_totals

        sides = (self.before.data, self.after.data)
        old, new = map(compute_totals, sides)
        parts = [
            f"compiles {old['compiles']} -> {new['compiles']}",
            f"recompiles {old['recompiles']} -> {new['recompiles']}",
            f"graph breaks {old['graph_breaks']} -> {new['graph_breaks']}",
            f"compiling {format_seconds(old['compile_s'])} -> {format_seconds(new['compile_s'])}",
        ]
        lines = [f"compilediag: {', '.join(parts)}"]
        before, after = (len({(row.rank, row.pid) for row in data.rows(Compile)}) for data in sides)
        if before != after:
            lines.append(f"Processes that compiled: {before} -> {after}; the counts are sums over all of them.")
        return lines

    def document(self, before: str, after: str) -> DiffDocument:
        """The differences as a document for other programs, `compilediag.diff/1` (`docs/schemas.md`).

        Args:
            before: the name of the first session in the document.
            after: the name of the second one.
        """
        from .views.json_documents import DiffDocument

        return DiffDocument(before, after, tuple(self.totals()), tuple(self.changes), self.uncompared)

    def _describe(self) -> Section:
        """Totals, then what is worse, better and other, then what was not compared."""
        headline, *others = self.totals()
        groups = []
        for worse, head in ((True, "Worse"), (False, "Better"), (None, "Other")):
            if titles := [[change.title] for change in self.changes if change.worse is worse]:
                shown = shorten_items(Items(titles, "indented", (" in ", Code("diff.frame"))), SHOWN)
                groups.append(Section(f"{head}:", shown))
        nothing = [] if self.changes else [Section("No differences.")]
        return Section(Section(Para(headline, strong=True), *others), *groups, *nothing, Section(*self.gaps()))

    def gaps(self) -> list[str]:
        """What could not be compared and why, one text per line."""
        return [f"Not compared: {table.replace('_', ' ')}: {why}" for table, why in self.uncompared.items()]

    def report(self, path: str | os.PathLike[str]) -> Path:
        """Write the differences as one offline HTML file.

        Args:
            path: the file to write.

        Raises:
            CompilediagError: it can't be written.
        """
        from .views.report import write_comparison

        sides = (self.before, self.after)
        before, after = (str(session.meta.get("title") or session.path.name) for session in sides)
        if before == after:
            before, after = (session.path.name for session in sides)
        sessions = (self.before.data, self.after.data)
        texts = (self.totals(), self.changes, self.gaps(), self.summary())
        return write_comparison(path, sessions, (before, after), *texts)


def read_baseline(path: str | os.PathLike[str]) -> Baseline:
    """Read the causes that a file accepts: a text baseline, or a session or logs, whose causes may occur any number of
    times.

    Raises:
        WrongInput: the file is none of these; the message is one line.
    """
    if check_input(path, InputKind.SESSION, InputKind.LOGS, InputKind.TEXT).kind is not InputKind.TEXT:
        accepted = accept(load_any(path).data)
        return {name: dataclasses.replace(cause, count=None) for name, cause in accepted.items()}
    try:
        return parse_baseline(Path(path).read_text(encoding="utf-8"))
    except ValueError as error:
        problem = format_first_line(error)
        raise WrongInput(
            f"{os.fspath(path)} is not a baseline: {problem}; `compilediag check --update` writes one"
        ) from None


def read_earlier_baseline(path: str | os.PathLike[str]) -> Baseline:
    """Read the text baseline that is to be written again; empty if there is none.

    Raises:
        CompilediagError: the file is something else, or can't be written; the message is one line.
    """
    check_output(path, BASELINE)
    if identify_input(path).kind in (InputKind.MISSING, InputKind.EMPTY):
        return {}
    check_input(path, InputKind.TEXT)
    return read_baseline(path)


def write_baseline(path: str | os.PathLike[str], baseline: Baseline) -> Path:
    """Write a text baseline, whole or not at all. CompilediagError if it can't be written."""
    target = Path(path)
    write_file(target, format_baseline(baseline))
    return target


NO_LOOKUPS = "no lookups in caches of compiled graphs were recorded"
#: Folders in a folder of Inductor's caches, whose entries are folders in folders: `fxgraph/ab/<key>/`.
GRAPH_FOLDERS = ("fxgraph", "aotautograd")


def coldstart(good: Session | str | os.PathLike[str], bad: Session | str | os.PathLike[str]) -> ColdStartReport:
    """Explain why a start compiled what an earlier one found in its caches.

    Record both with `detail="full"`, or with TORCH_TRACE: what differs is found in the parts of cache keys.

    Args:
        good: the start that was served by caches, or the one that filled them: a session, a session file, a folder of
            them, TORCH_TRACE logs, or the folder of the caches (TORCHINDUCTOR_CACHE_DIR).
        bad: the start to explain: a session, a session file, a folder of them, or logs. With vLLM, both can be folders
            of its caches (VLLM_CACHE_ROOT), of which only the files cache_key_factors.json are read.

    Raises:
        WrongInput: a path is something else; the message is one line.
    """
    starts = [_open_vllm_caches(start) for start in (good, bad)]
    if None not in starts:
        return ColdStartReport(*filter(None, starts))
    return ColdStartReport(_open_start(good, may_be_folder=True), _open_start(bad))


class ColdStartReport:
    """What `coldstart` found: `causes`, the most expensive first, each with its compiles and their seconds."""

    def __init__(self, good: Start, bad: Start):
        self.seconds = good.seconds, bad.seconds
        self.found: ColdStart = compare_starts(good, bad)

    @property
    def causes(self) -> tuple[ColdCause, ...]:
        """Why graphs came from no cache, the most expensive cause first."""
        return self.found.causes

    def __repr__(self) -> str:
        return f"<compilediag cold start: {format_amount(len(self.causes), 'cause')}>"

    def _repr_html_(self) -> str:
        return to_html(self._describe())

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(self.summary())

    def summary(self) -> str:
        """The causes as plain text, the most expensive one first."""
        return f"{to_text(self._describe())}\n"

    def _describe(self) -> Section:
        (before, after), served = self.seconds, self.found.served
        if after is None:
            differ = format_amount(len(self.found.environment), "factor") + " of vLLM's caches differ"
            head = Para(f"compilediag: {differ}", strong=True)
            return Section(head, Items([[text] for text in self.found.environment], "indented"))
        cold = sum(cause.graphs for cause in self.causes)
        took = f"compiling took {format_seconds(after)}"
        took += "" if before is None else f" instead of {format_seconds(before)}"
        graphs = f"{cold} of {format_amount(cold + served, 'graph')} came from no cache"
        differs = "; ".join(self.found.environment)
        unused = ", ".join(
            f"{len(found.unused)} of {len(found.loaded)} of {describe_code(found.cache)} "
            f"({format_amount(len(found.missed), 'lookup that missed', 'lookups that missed')})"
            for found in self.found.artifacts
            if found.unused
        )
        return Section(
            Section(
                Para(f"compilediag: {took}; {graphs if cold + served else NO_LOOKUPS}", strong=True),
                *([f"The environment differs: {differs}."] if differs else []),
                *([f"Artifacts that were loaded and not used: {unused}."] if unused else []),
            ),
            Items([_describe_cause(cause) for cause in self.causes], "numbered"),
        )


def _describe_cause(cause: ColdCause) -> list[Block]:
    what = f"{cause.factor.text}: {format_amount(cause.graphs, 'graph')}"
    what += f", {format_seconds(cause.seconds)}" if cause.seconds else ""
    functions = dict.fromkeys(format_function(*get_place(row)) for row in cause.compiles)
    blocks: list[Block] = [Para(what, strong=True)]
    blocks += [format_names([*functions], SHOWN_FUNCTIONS)] if functions else []
    blocks += [Items([[format_line(text, 200)] for text in cause.changes[:SHOWN]], "plain")] if cause.changes else []
    if cause.others:
        blocks.append(f"Other differences, which may be consequences: {format_names(cause.others, SHOWN_FUNCTIONS)}.")
    if cause.follows:
        missed = [format_amount(n, f"miss in {name}", f"misses in {name}") for name, n in cause.follows.items()]
        blocks.append(f"This also caused {', '.join(missed)}.")
    return [*blocks, cause.advice]


def _open_start(start: Session | str | os.PathLike[str], may_be_folder: bool = False) -> Start:
    if may_be_folder and not isinstance(start, Session):
        # The keys whose entries are in a folder of Inductor's caches. No entry is opened: they are pickles.
        found = (entry for name in GRAPH_FOLDERS for entry in Path(start).glob(f"{name}/*/*"))
        if names := frozenset(entry.name for entry in found if entry.is_dir()):
            return Start(RowList(()), names=names)
    data = (start if isinstance(start, Session) else load_any(start)).data
    with data.settled():
        return Start(data, data.meta, read_keys(_read_texts(data)))


#: In what vLLM makes the name of a cache from; more bytes than such a file has.
FACTORS, MOST_BYTES = "cache_key_factors.json", 4 << 20


def _open_vllm_caches(folder: Session | str | os.PathLike[str]) -> Start | None:
    """What the newest of vLLM's caches in a folder was made from; None if there is none."""
    if isinstance(folder, Session) or not Path(folder).is_dir():
        return None
    factors: dict[str, str] = {}
    # The caches of each rank and part of the model: `<hash>/rank_0_0/backbone/cache_key_factors.json`.
    for file in sorted(Path(folder).rglob(FACTORS), key=lambda file: file.stat().st_mtime):
        with ignore(OSError, ValueError, RecursionError):
            if file.stat().st_size <= MOST_BYTES:
                factors |= _flatten(json.loads(file.read_text(encoding="utf-8")))
    return Start(RowList(()), factors=factors) if factors else None


def _flatten(value: Any, name: str = "") -> dict[str, str]:
    """`{"env": {"VLLM_USE_V1": true}}` -> `{"env.VLLM_USE_V1": "true"}`."""
    if not name and not isinstance(value, dict):
        return {}
    if isinstance(value, dict) and value:
        parts = (_flatten(part, f"{name}.{key}" if name else str(key)) for key, part in value.items())
        return {key: text for part in parts for key, text in part.items()}
    return {format_line(name, 200): format_line(json.dumps(value), 200)}


def _read_texts(data: SessionData) -> Iterator[tuple[str, str]]:
    """The artifacts that have parts of cache keys, as (name, text)."""
    for row in data.rows(Artifact):
        if row.name is not None and row.name.startswith((KEY, *LOGGED)) and row.event_id is not None:
            with contextlib.suppress(KeyError):  # Beyond the session's limit for texts, or damaged.
                yield row.name, data.artifact(row.event_id)
