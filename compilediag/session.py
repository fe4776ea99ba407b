"""A session: everything that was recorded, read from one file. Every view is made from this.

It reads a running recording (of this process or another one) as well as a saved file. Reading a table
first flushes what this process has recorded.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import tempfile
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .errors import CompilediagError
from .events import SourceStatus
from .storage.data import SessionData, TableProperties
from .storage.store import is_session, remove

if TYPE_CHECKING:
    import anywidget
    import pandas as pd
    import plotly.graph_objects as go

    from .diagnosis import Finding
    from .diagnosis.causes.what_if import WhatIf
    from .diagnosis.ranks.rank_comparison import Ranks
    from .logs import Paths
    from .trials.advise import Advised
    from .trials.verify import Verification, Workload


def load(path: str | os.PathLike[str]) -> Session:
    """Open a saved session, or one that another process is recording. Executes nothing that is in the file.

    All session files of a folder are one session, as they are now: the ranks of a job that each watched into it, or the
    partitions that a Dask cluster wrote.
    NotASession or NewerSchema, in one line, if it can't be read. The tables of a damaged file have the rows that can.
    """
    if not Path(path).is_dir():
        return Session(Path(path))
    from .logs import read_folder

    return _open_temporary(read_folder(Path(path)))


def ingest(
    paths: Paths,
    out: str | os.PathLike[str] | None = None,
    strict: bool = False,
    processes: int | None = None,
    dask: str | None = None,
) -> Session:
    """Read logs that TORCH_TRACE wrote (torch 2.4 and later; files or folders; plain, gzip or zstd) into a session.

    `out`: the session file to write; an existing session is replaced. None for a temporary file. If an earlier run into
    `out` was interrupted, this one continues it. A log that is given twice, or is the start of another, is read once.
    Files that a log names are not opened. What can't be read is counted in the row "logs" of `session.sources`.
    `processes`: how many processes read, each whole logs. By default one per core, at most eight, and one for small
    logs. The session is the same for any number.
    `dask`: address of the scheduler of a Dask cluster, which reads each log in a task of its own, into a Parquet
    partition. `out` is then a folder that its workers see too, and `load(out)` opens it again.
    UnreadRecords, at the end, if `strict` and something could not be read; CompilediagError if there are no logs.
    """
    from .logs import read_logs, read_logs_with_dask

    if dask is not None:
        return load(read_logs_with_dask(paths, out, strict, dask)[0])
    file, _ = read_logs(paths, out, strict, processes)
    return _open_temporary(file) if out is None else Session(file)


def load_any(path: str | os.PathLike[str]) -> Session:
    """Open a session file or a folder of them as `load` does; read logs into a temporary session as `ingest` does."""
    from .logs import has_sessions

    file = Path(path)
    return load(file) if is_session(file) or has_sessions(file) else ingest(file)


def _open_temporary(file: Path) -> Session:
    """Open a session file that is deleted when nobody uses the session any more."""
    session = Session(file)
    weakref.finalize(session.data, remove, file)
    return session


class Session(TableProperties):
    """The record of one watch. Tables are DataFrames; their columns are documented in `docs/tables.md`."""

    def __init__(self, source: Path | SessionData):
        self.data = SessionData(source) if isinstance(source, Path) else source

    def __repr__(self) -> str:
        return f"<compilediag session {self.path} ({self.state})>"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(self.summary())

    @property
    def path(self) -> Path:
        """The session's file."""
        return self.data.path

    @property
    def state(self) -> str:
        """watching (also if another living process records it), stopped (recorded by this process), or loaded."""
        return self.data.state

    def table(self, name: str) -> pd.DataFrame:
        """A table by its name, as a DataFrame of its own; "events" is the list of all events."""
        return self.data.table(name)

    @property
    def meta(self) -> dict[str, Any]:
        """Of the session as a whole: schema_version, torch_version, detail, pid, created_ns, stopped_ns, ..."""
        return self.data.meta

    def artifact(self, event_id: int) -> str:
        """The text of an artifact. KeyError if there is no such artifact or its text was not kept."""
        return self.data.artifact(event_id)

    def stack(self, key: str) -> list[str]:
        """A call stack by its key (column `stack` of compiles, `user_stack`, ...): `file:line function` a frame, the
        outermost first. KeyError if there is none.
        """
        return self.data.stack(key)

    def metrics(self, event_id: int) -> dict[str, Any]:
        """All fields of torch's CompilationMetrics of one compile (its event id), by torch's names.

        KeyError if there is no such compile or they were not kept: a session of logs has them, a watch has not.
        """
        return self.data.metrics(event_id)

    def progress(self) -> list[dict[str, Any]]:
        """What is compiling now, one dict a thread: compile_id, function, file, line, trigger, phases, started_ns."""
        return self.data.progress()

    def status(self) -> list[dict[str, Any]]:
        """One dict per source: name, status, reason, reason_code, events, dropped, overhead_s (s of the user's
        time); and one per plug-in that failed in this process, `dropped` being how often.
        """
        from .plugins import list_failed

        names = ("name", "status", "reason", "reason_code", "events", "dropped", "overhead_s")
        states = sorted(self.data.rows(SourceStatus), key=lambda state: (state.pid or 0, state.name or ""))
        rows = [{name: getattr(state, name) for name in names} for state in states]
        failed = [(p.subject, "failed", p.reason, "errors", None, p.failures, None) for p in list_failed()]
        return rows + [dict(zip(names, row, strict=True)) for row in failed]

    def flush(self) -> None:
        """Everything that this process recorded so far is in the file when this returns."""
        self.data.flush()

    def settled(self) -> contextlib.AbstractContextManager[None]:
        """One flush for all that this thread reads in the block: beside a busy compiler each costs it 5 ms or more."""
        return self.data.settled()

    # Views

    def findings(self) -> list[Finding]:
        """What to change, ranked by seconds lost."""
        from .diagnosis import diagnose

        return diagnose(self.data)

    def explain_miss(self, event_id: int) -> str:
        """Why a look-up of `cache_lookups` missed, in words: the nearest earlier key, and what differs.

        KeyError if there is no such look-up, CompilediagError if it was no miss.
        """
        from .diagnosis import explain_miss

        return explain_miss(self.data, int(event_id))

    def break_even(self) -> pd.DataFrame:
        """One row a compiled entry: what it cost, and whether its calls have paid for that (`docs/tables.md`)."""
        from .diagnosis import break_even

        return break_even(self.data)

    def verify(self, finding: Finding, workload: Workload) -> Verification:
        """Run `workload` with and without the fix of `finding`, beside what is compiled: does it hold?

        `workload` is a function without arguments that runs the code again. See `compilediag.trials.verify` for what is
        isolated, and what is not. CompilediagError where fixes can't be tried.
        """
        from .trials.verify import verify

        return verify(finding, workload)

    def advise(self, workload: Workload) -> Advised:
        """Try the fixes of what `workload` shows, alone and together: the smallest set of settings that works."""
        from .trials.advise import advise

        return advise(workload)

    def what_if(self, finding: Finding, buckets: Sequence[int] | None = None) -> WhatIf | None:
        """The compiles that other choices would have needed over the recorded calls, without running anything.

        For a size: static, dynamic, or padded to `buckets` or to steps, with padding's waste; for a limit: a higher
        one. None where the finding leaves no choice, ValueError if the buckets don't hold the largest size.
        """
        from .diagnosis.causes.what_if import what_if

        return what_if(finding, self.data, buckets)

    def ranks(self) -> Ranks:
        """The ranks of a distributed job, told against each other: where they first went different ways and at which
        guard or cache, what each compiled, stragglers first. `.summary()` is text, `.frame` and `.graphs` are tables.
        """
        from .diagnosis.ranks.rank_comparison import Ranks

        with self.settled():
            return Ranks(self.data, is_live=self.state == "watching")

    def summary(self) -> str:
        """The session as plain text: counts, findings, and what was not observed."""
        from .views.summary import format_summary

        return format_summary(self.data)

    def dashboard(self) -> anywidget.AnyWidget:
        """The live widget. CompilediagError where anywidget is not installed."""
        from .views.dashboard import make_dashboard

        return make_dashboard(self.data)

    def explore(self, finding: Finding | None = None) -> anywidget.AnyWidget:
        """The guard-failure explorer: a live widget that opens at the guard behind `finding`, if one is given.

        CompilediagError where anywidget is not installed; `%compilewatch explore` then gives its text.
        """
        from .views.explorer.explorer_widget import make_explorer

        return make_explorer(self.data, finding)

    def figure(self, name: str) -> go.Figure:
        """A plotly figure: "timeline", "causes", "phases", "caches", "autotune", "autotune_margins", "autotune_payoff",
        "cudagraphs", "cudagraphs_captures", "cudagraphs_coverage" or "cudagraphs_skips". CompilediagError for any
        other name.
        """
        from .views.figures.catalog import make_figure

        return make_figure(self.data, name)

    def report(self, path: str | os.PathLike[str], redact: bool = False) -> Path:
        """Write one offline HTML file; `redact` leaves out source code, values and paths."""
        from .views.report import write_report

        return write_report(self.data, Path(path), redact=redact)

    def export(self, path: str | os.PathLike[str], format: str = "perfetto") -> Path:
        """Write this session for other tools: "perfetto", one JSON file that ui.perfetto.dev opens; "parquet" or "csv",
        a folder with a file a table (lists and dicts as JSON). CompilediagError if it can't be written.
        """
        from .views.export import export_session

        return export_session(self.data, path, format)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write a copy of this session as one file, whole or not at all; the recording goes on where it is.

        CompilediagError if the path can't be written.
        """
        target = Path(path).absolute()
        self.flush()
        try:
            with tempfile.TemporaryDirectory(dir=target.parent, prefix=".compilediag-") as folder:
                copy = Path(folder) / target.name
                with self.data.lock:
                    self.data.store.connection.execute("VACUUM INTO ?", (str(copy),))
                os.replace(copy, target)
        except (OSError, sqlite3.Error) as error:
            raise CompilediagError(f"{target} can't be written: {error}") from None
        return target
