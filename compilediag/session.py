"""The public session: one object for the data, the findings and the views of a recording, and how to open one.

A session reads a running recording, of this process or another one, as well as a saved file. `SessionData` has the
data; the findings and views are imported when they are first used.
"""

from __future__ import annotations

import bisect
import contextlib
import os
import weakref
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .errors import CompilediagError
from .events import Artifact, Compile, SourceStatus
from .storage.data import SessionData, TableProperties
from .storage.session_files import (
    delete_old,
    list_kept,
    mark_kept,
    name_kept,
    remove_abandoned,
    remove_temporary,
    unmark_kept,
)
from .system.files import close_all, make_absolute

if TYPE_CHECKING:
    import anywidget
    import pandas as pd
    import plotly.graph_objects as go

    from .diagnosis import Finding
    from .diagnosis.causes.what_if import WhatIf
    from .diagnosis.plan import Plan
    from .diagnosis.rank_comparison import Ranks
    from .logs.ingestion import Paths
    from .views.findings_document import FindingsDocument


def load(path: str | os.PathLike[str]) -> Session:
    """Open a saved session, or one that another process is recording. Executes nothing that is in the file.

    All session files of a folder are one session: the ranks of a job that each watched into it, or the partitions that
    a Dask cluster wrote. While ranks are recording, the session keeps up with them, and with ranks that begin later.
    The tables of a damaged file have the rows that can be read.

    Args:
        path: a session file, or a folder of them.

    Raises:
        WrongInput, NotASession, NewerSchema: it can't be read; the message is one line.
    """
    from .logs.inputs import InputKind, check_input

    check_input(path, InputKind.SESSION)
    return _load(path)


def _load(path: str | os.PathLike[str]) -> Session:
    if not Path(path).is_dir():
        return Session(Path(path))
    from .logs.folders import open_folder

    return Session(open_folder(Path(path)))


def last(number: int = 1) -> Session:
    """Open a session that `compilediag run` has kept.

    The last 20 are kept in the folder `compilediag/sessions` of XDG_STATE_HOME, by default `~/.local/state`, readable
    by you only. `COMPILEDIAG_HISTORY=off` keeps none. That of a run that was killed has no `meta["stopped_ns"]`.

    Args:
        number: 1 for the last run, 2 for the last but one, and so on.

    Raises:
        CompilediagError: there is no such session.
    """
    _keep_killed()
    kept = list_kept()
    if not kept:
        raise CompilediagError("no session is kept; `compilediag run train.py` keeps that of its run")
    if not 1 <= number <= len(kept):
        raise CompilediagError(f"there is no session {number}; those of the last {len(kept)} runs are kept")
    return Session(kept[number - 1])


def keep(session: Session) -> Path:
    """Keep a copy of a session for `last`, and delete the oldest one. CompilediagError if that is not possible."""
    file = session.save(name_kept())
    unmark_kept(session.path)
    _keep_killed()
    delete_old()
    return file


def keep_if_killed(session: Session) -> None:
    """Have the temporary session of a run kept for `last`, too, if the process is killed before it ends."""
    mark_kept(session.path)


def _keep_killed() -> None:
    """Keep the sessions of runs that were killed on this machine."""
    descriptors: list[int] = []
    try:
        remove_abandoned(descriptors, _keep_copy)
    finally:
        close_all(descriptors)


def _keep_copy(file: Path) -> None:
    Session(file).save(name_kept(datetime.fromtimestamp(file.stat().st_mtime, UTC)))


def ingest(
    paths: Paths,
    out: str | os.PathLike[str] | None = None,
    strict: bool = False,
    processes: int | None = None,
    dask: str | None = None,
    group_ranks: bool | None = None,
) -> Session:
    """Read logs that TORCH_TRACE wrote (torch 2.4 and later; files or folders; plain, gzip or zstd) into a session.

    Files that a log names are not opened. What can't be read is counted in the row "logs" of `session.sources`.

    Args:
        paths: a file or folder, or several. A log that is given twice, or is the start of another, is read once.
        out: the session file to write; an existing session is replaced. None for a temporary file. If an earlier run
            into `out` was interrupted, this one continues it.
        strict: raise `UnreadRecords` at the end if something could not be read.
        processes: how many processes read. By default one per core, at most eight, and one for small logs. The session
            is the same for any number.
        dask: address of the scheduler of a Dask cluster, which reads each log in a task of its own, into a Parquet
            partition. `out` is then a folder that its workers see too, and `load(out)` opens it again.
        group_ranks: scan all logs for what their ranks compiled, and read those of one rank of each group of ranks that
            compiled the same. The tables then have rows of these ranks only; `ranks()` and `rank_members` have all
            ranks, each with its own seconds. By default, 257 or more logs are grouped.

    Raises:
        WrongInput: a path is not a log.
        UnreadRecords: with `strict`, something could not be read.
    """
    from .logs.ingestion import read_logs, read_logs_with_dask
    from .logs.inputs import check_logs

    paths = [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)
    check_logs(paths)
    if dask is not None:
        return load(read_logs_with_dask(paths, out, strict, dask)[0])
    file, _ = read_logs(paths, out, strict, processes, group_ranks)
    return _open_temporary(file) if out is None else Session(file)


def load_any(path: str | os.PathLike[str]) -> Session:
    """Open a session file or a folder of them as `load` does; read logs into a temporary session as `ingest` does."""
    from .logs.ingestion import read_logs
    from .logs.inputs import InputKind, check_input

    found = check_input(path, InputKind.SESSION, InputKind.LOGS)
    return _load(path) if found.kind is InputKind.SESSION else _open_temporary(read_logs(path)[0])


def _open_temporary(file: Path) -> Session:
    """Open a session file that is deleted when nobody uses the session any more."""
    session = Session(file)
    weakref.finalize(session.data, remove_temporary, file)
    return session


class Session(TableProperties):
    """The record of one watch. Its tables are DataFrames, documented in `docs/tables.md`; `data` has the typed rows."""

    def __init__(self, source: Path | SessionData):
        self.data = SessionData(source) if isinstance(source, Path) else source

    def __repr__(self) -> str:
        return f"<compilediag session {self.path} ({self.state})>"

    def _repr_html_(self) -> str:
        from .document import to_html
        from .views.summary import describe_session

        with self.settled():
            return to_html(describe_session(self.data))

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(self.summary())

    @property
    def path(self) -> Path:
        """The session's file."""
        return self.data.path

    @property
    def state(self) -> str:
        """watching (also if another living process records it), stopped (recorded by this process), lost (as well, but
        its file could not be written to the end; `sources` has the reason), or loaded.
        """
        return self.data.state

    def table(self, name: str) -> pd.DataFrame:
        """The table with this name, as a new DataFrame.

        Args:
            name: a table of docs/tables.md; "events" is the list of all events.
        """
        return self.data.table(name)

    @property
    def meta(self) -> dict[str, Any]:
        """Facts about the whole session: schema_version, torch_version, detail, pid, created_ns, stopped_ns, ..."""
        return self.data.meta

    def artifact(self, event_id: int) -> str:
        """The text of an artifact.

        Args:
            event_id: number of its row in `artifacts`.

        Raises:
            KeyError: there is no such artifact or its text was not stored.
        """
        return self.data.artifact(event_id)

    def stack(self, key: str) -> list[str]:
        """A call stack: `file:line function` per frame, the outermost first.

        Args:
            key: a value of a column that holds stacks: `stack` of `compiles`, `user_stack`, ...

        Raises:
            KeyError: there is no such key.
        """
        return self.data.stack(key)

    def metrics(self, event_id: int) -> dict[str, Any]:
        """All fields of torch's CompilationMetrics for one compile, with torch's names.

        Args:
            event_id: number of its row in `compiles`.

        Raises:
            KeyError: there is no such compile or its metrics were not stored: only sessions read from logs have them.
        """
        from .decode.records.compilation_metrics import KINDS, join_texts

        first, names = int(event_id), {}
        if any(row.event_id == first for row in self.data.rows(Compile)):
            artifacts = self.data.rows(Artifact)
            begin = bisect.bisect_right(artifacts, first, key=lambda row: row.event_id or 0)
            # They come right behind it, each long field on its own.
            for at, row in enumerate(artifacts[begin : begin + 20], first + 1):
                if row.event_id != at or row.name is None or row.name.split(".")[0] not in KINDS:
                    break
                names[row.name] = at
        if not names:
            raise KeyError(f"no metrics are kept for event {event_id}")
        try:
            return join_texts({name: self.artifact(at) for name, at in names.items()})
        except (ValueError, TypeError, RecursionError) as error:
            raise KeyError(f"the metrics of event {event_id} are damaged: {error}") from None

    def progress(self) -> list[dict[str, Any]]:
        """What is compiling now, one dict per thread: compile_id, function, file, line, trigger, phases, started_ns."""
        return self.data.progress()

    def status(self) -> list[dict[str, Any]]:
        """One dict per source: name, status, reason, reason_code, events, dropped, overhead_s (s of the user's
        time); and one per plug-in that failed in this process, `dropped` being how often.
        """
        from .system.plugins import list_failed

        names = ("name", "status", "reason", "reason_code", "events", "dropped", "overhead_s")
        states = sorted(self.data.rows(SourceStatus), key=lambda state: (state.pid or 0, state.name or ""))
        rows = [{name: getattr(state, name) for name in names} for state in states]
        failed = [(p.subject, "failed", p.reason, "errors", None, p.failures, None) for p in list_failed()]
        return rows + [dict(zip(names, row, strict=True)) for row in failed]

    def end_warmup(self, on_compile: str = "count") -> None:
        """The program is warm: what compiles from here on is a row of `incidents`.

        Called again, it only changes what happens at an incident.

        Args:
            on_compile: "count" records it, "warn" also logs one line with the function, the change and the step,
                "raise" raises `CompiledAfterWarmup` in the caller, before torch compiles.

        Raises:
            CompilediagError: this process does not record the session, or this torch can't raise before it compiles.
        """
        self.data.end_warmup(on_compile)

    def flush(self) -> None:
        """Write everything that this process has recorded so far to the file."""
        self.data.flush()

    def settled(self) -> contextlib.AbstractContextManager[None]:
        """Flush once for everything that this thread reads in the block: while the compiler is busy, each flush takes
        5 ms or more.
        """
        return self.data.settled()

    # Views

    def plan(self) -> Plan:
        """The smallest set of changes that saves the most compile seconds: `print(session.plan())`.

        `.steps` are the changes, `.code()` is the block to paste.
        """
        from .diagnosis.plan import make_plan

        with self.settled():
            return make_plan(self.data)

    def warmup(self, path: str | os.PathLike[str], distributed: bool = False) -> Path:
        """Write a Python script that compiles everything this session saw and saves torch's cache artifacts.

        For a session of a script (`compilediag run`, or `cd.watch()` in it), run it with the program's command line:
        `python warmup.py train.py --lr 0.1`. It ends the program once all variants are compiled. For a notebook, the
        calls are marked with TODO.

        Args:
            path: the script to write.
            distributed: torchrun starts it, with as many ranks as the job has. Each saves its own artifacts, and none
                ends before all have saved theirs.

        Raises:
            CompilediagError: nothing was compiled or the path can't be written.
        """
        from .views.warmup_script import write_warmup

        with self.settled():
            return write_warmup(self.data, path, distributed)

    def repro(self, event_id: int | None = None) -> str:
        """A Python script of two calls with fake inputs, at the second of which the guard of a recompile fails again.

        Args:
            event_id: of the recompile; without it, the one that cost most among those that can be reproduced.

        Raises:
            CompilediagError: no recompile has this id, or its guard can't be reproduced with fake inputs.
        """
        from .views.repro import make_repro

        with self.settled():
            return make_repro(self.data, event_id)

    def findings(self) -> list[Finding]:
        """What to change, ranked by the seconds that it can save. A notebook shows the list as HTML."""
        from .diagnosis import diagnose
        from .diagnosis.finding import FindingList

        with self.settled():
            return FindingList(diagnose(self.data))

    def findings_document(
        self, budget: int | None = None, after: str | None = None, only: str | None = None
    ) -> FindingsDocument:
        """The findings as a document for other programs, `compilediag.findings/1` (`docs/findings.md`).

        Args:
            budget: characters that its JSON may have: the least important findings are left out. None for all.
            after: fingerprint of the finding before the first one.
            only: fingerprint of the only finding.

        Raises:
            CompilediagError: no finding has this fingerprint.
        """
        from .views.findings_document import make_findings_document

        return make_findings_document(self.data, None, budget, after, only)

    def explain_miss(self, event_id: int) -> str:
        """Explain why a lookup in `cache_lookups` missed: the nearest earlier key, and what differs.

        Args:
            event_id: number of its row in `cache_lookups`.

        Raises:
            KeyError: there is no such lookup.
            CompilediagError: it was not a miss.
        """
        from .diagnosis import explain_miss

        return explain_miss(self.data, int(event_id))

    def break_even(self) -> pd.DataFrame:
        """One row per compiled entry: what it cost, and whether its calls have saved that (`docs/tables.md`)."""
        from .diagnosis import break_even

        return break_even(self.data)

    @property
    def incidents(self) -> pd.DataFrame:
        """One row per compile, capture, tuning or cache miss after the warm-up ended (`docs/tables.md`): when it was,
        why, and the inputs to add to the warm-up. Rows with `part_of` belong to a compile that has a row itself.
        """
        from .diagnosis.incidents import make_incident_frame

        with self.settled():
            return make_incident_frame(self.data)

    def what_if(self, finding: Finding, buckets: Sequence[int] | None = None) -> WhatIf | None:
        """Count the compiles that the recorded calls would have needed with other settings, without running anything.

        For a size: static, dynamic, or padded, with the share of padding. For a limit: a higher one. None if there are
        no alternatives.

        Args:
            finding: one of `findings()`.
            buckets: the sizes to pad to; by default steps are tried.

        Raises:
            ValueError: the largest size does not fit the buckets.
        """
        from .diagnosis.causes.what_if import what_if

        return what_if(finding, self.data, buckets)

    def ranks(self) -> Ranks:
        """Compare the ranks of a distributed job: where they first diverge and at which guard or cache, and what each
        compiled, stragglers first. `.summary()` is text, `.frame` and `.graphs` are tables.
        """
        from .diagnosis.rank_comparison import Ranks

        with self.settled():
            return Ranks(self.data, is_live=self.state == "watching")

    def summary(self) -> str:
        """The session as plain text: totals, findings, and what was not collected."""
        from .views.summary import format_summary

        return format_summary(self.data)

    def dashboard(self) -> anywidget.AnyWidget:
        """The live widget.

        Raises:
            CompilediagError: anywidget is not installed.
        """
        from .views.widget import make_dashboard

        return make_dashboard(self.data)

    def explore(self, finding: Finding | None = None) -> anywidget.AnyWidget:
        """The guard-failure explorer, a live widget.

        Args:
            finding: one of `findings()`: the explorer opens at the guard behind it.

        Raises:
            CompilediagError: anywidget is not installed; `%compilewatch explore` then prints it as text.
        """
        from .views.widget import make_explorer

        return make_explorer(self.data, finding)

    def figure(self, name: str) -> go.Figure:
        """A plotly figure. It has no background, so it can be read in light and dark notebooks.

        Args:
            name: "timeline", "causes", "phases", "tracing", "caches", "autotune", "autotune_margins",
                "autotune_payoff", "cudagraphs", "cudagraphs_captures", "cudagraphs_coverage" or "cudagraphs_skips".

        Raises:
            CompilediagError: there is no figure of that name.
        """
        from .views.figures import make_figure

        return make_figure(self.data, name)

    def report(self, path: str | os.PathLike[str], redact: bool = False) -> Path:
        """Write one offline HTML file.

        Args:
            path: the file to write.
            redact: leave out source code, values and paths.
        """
        from .views.report import write_report

        return write_report(self.data, Path(path), redact=redact)

    def export(self, path: str | os.PathLike[str], format: str = "perfetto", redact: bool | None = None) -> Path:
        """Write this session for other tools.

        Args:
            path: the file or folder to write.
            format: "perfetto": one JSON file that ui.perfetto.dev opens. "speedscope": one that speedscope.app opens,
                with the seconds that Dynamo traced each function. "parquet" or "csv": a folder with one file per table
                (lists and dicts as JSON). "markdown": a text of at most 60 kB for an issue, with environment, plan and
                recompiles. "sarif": the findings at your lines as SARIF 2.1.0, with paths relative to
                $GITHUB_WORKSPACE, or to the working directory.
            redact: whether "markdown" leaves out source code, values and paths; by default it does. The other formats
                can't be redacted.

        Raises:
            CompilediagError: it can't be written, or not in this way.
        """
        from .views.export import export_session

        return export_session(self.data, path, format, redact)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write a copy of this session to one file, whole or not at all; a running recording continues in its own file.

        Args:
            path: the file to write.

        Raises:
            CompilediagError: the path can't be written, or is a file that is not a session.
        """
        return self.data.write_copy(make_absolute(path))
