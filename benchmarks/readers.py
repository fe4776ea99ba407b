"""Four threads compile while others read every table, the model of the dashboard and the file of the same session.

Prints the errors, which are none, and how much was read. `tests/live/test_readers.py` runs it for some seconds;
`python -m benchmarks.readers --minutes 10` runs it for as long as it takes to find what is rare.
"""

from __future__ import annotations

import argparse
import json
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable
from typing import Any

import torch

import compilediag as cd
from compilediag.events import KINDS, Recompile, SourceStatus
from compilediag.storage.data import SessionData
from compilediag.views.model import ViewModel
from compilediag.views.page_rows import UNLISTED

COMPILERS = 4
#: Compiles of one function, of which all but the first are recompiles.
MODES = ("a", "b", "c")
TABLES = [kind.table for kind in KINDS]
#: What each thread counts.
READ = ("compiles", "tables", "typed rows", "summaries", "patches", "snapshots", "copies")
#: The page has one row for each source, and the tables have its last state: both have fewer rows than events.
OF_SOURCES = SourceStatus.table


def scale(x: torch.Tensor, mode: str) -> torch.Tensor:
    """The program: `mode` is guarded, so each new one is compiled."""
    return x * len(mode)


class Run:
    """What the threads share: whether to go on, what went wrong, and what was done how often."""

    def __init__(self) -> None:
        self.is_over = threading.Event()
        self.errors: list[str] = []
        self.counts: Counter[str] = Counter()

    def repeat(self, work: Callable[[], None], pause_s: float) -> threading.Thread:
        """A thread that calls `work` until the run is over, and keeps what it raises."""

        def loop() -> None:
            while not self.is_over.is_set():
                try:
                    work()
                except Exception:
                    self.errors.append(traceback.format_exc())
                self.is_over.wait(pause_s)

        return threading.Thread(target=loop, name=work.__name__)

    def require(self, is_true: bool, text: str) -> None:
        if not is_true:
            self.errors.append(text)


class Compiler:
    """Compiles a new function for each of `MODES`."""

    def __init__(self, run: Run, number: int):
        self.run, self.number, self.functions = run, number, 0

    def compile_one(self) -> None:
        self.functions += 1
        code = scale.__code__.replace(co_name=f"scale_{self.number}_{self.functions}")
        compiled = torch.compile(type(scale)(code, scale.__globals__), backend="eager")
        for mode in MODES:
            self.run.require(compiled(torch.ones(2), mode).tolist() == [1.0, 1.0], "a result is wrong")
            self.run.counts["compiles"] += 1


class TableReader:
    """Reads every table as a DataFrame and as typed rows: no event disappears, and none is there twice."""

    def __init__(self, run: Run, session: cd.Session):
        self.run, self.session = run, session
        self.lengths: Counter[str] = Counter()

    def read_tables(self) -> None:
        for table in TABLES:
            frame = self.session.table(table)
            ids = frame["event_id"]
            self.run.require(ids.is_unique, f"{table} has an event twice")
            self.run.require(len(frame) >= self.lengths[table], f"{table} has lost rows")
            self.lengths[table] = len(frame)
            self.run.counts["rows in tables"] += len(frame)
        self.run.require(self.session.events["id"].is_unique, "events has an event twice")
        self.run.counts["tables"] += len(TABLES) + 1

    def read_rows(self) -> None:
        for kind in KINDS:
            ids = [row.event_id for row in self.session.data.rows(kind)]
            if kind is not SourceStatus:
                self.run.require(ids == sorted(set(ids)), f"the rows of {kind.table} are not in order")
            self.run.counts["typed rows"] += len(ids)

    def read_texts(self) -> None:
        self.session.summary(), self.session.status(), self.session.progress(), self.session.plan()
        artifacts = self.session.artifacts
        for event_id in artifacts["event_id"].tail(5):
            self.run.require(bool(self.session.artifact(event_id)), "a text is empty")
        self.run.counts["summaries"] += 1


class PageReader:
    """Takes the patches that a dashboard gets, and now and then everything again, as after a resync."""

    def __init__(self, run: Run, data: SessionData):
        self.run = run
        self.model = ViewModel(data)
        self.ids: dict[str, set[int]] = {table: set() for table in TABLES}

    def take_patch(self) -> None:
        patch = self.model.patch()
        if patch is None:
            return
        for table, rows in patch.get("rows", {}).items():
            if table not in self.ids:
                continue
            fresh = {row[0] for row in rows}
            # The seconds of a recompile are known later; then it is sent again.
            if table not in (Recompile.table, OF_SOURCES):
                self.run.require(not fresh & self.ids[table], f"a page gets rows of {table} twice")
            self.ids[table] |= fresh
        self.run.counts["patches"] += 1

    def take_everything(self) -> None:
        known = {table: set(ids) for table, ids in self.ids.items()}
        rows = self.model.snapshot()["rows"]
        for table, ids in known.items():
            missing = ids - {row[0] for row in rows.get(table, [])}
            self.run.require(not missing, f"a snapshot lacks {len(missing)} rows of {table} that were sent")
        self.run.counts["snapshots"] += 1


def read_copy(run: Run, session: cd.Session) -> None:
    """Read the file as another process does."""
    copy = cd.load(session.path)
    for table in TABLES:
        copy.table(table)
    run.counts["copies"] += 1


def compare_with_tables(run: Run, session: cd.Session, pages: PageReader) -> dict[str, int]:
    """Each table's rows are on the page, and the page has no others. How many there are."""
    found = {}
    for kind in KINDS:
        ids = set(session.table(kind.table)["event_id"])
        found[kind.table] = len(ids)
        if kind is SourceStatus or kind in UNLISTED:
            continue
        lost, extra = ids - pages.ids[kind.table], pages.ids[kind.table] - ids
        run.require(
            not lost and not extra, f"{kind.table}: the page lacks {len(lost)} rows and has {len(extra)} others"
        )
    return found


def run_for(seconds: float) -> dict[str, Any]:
    """Compile and read for some seconds, and until everybody has read something; what came of it."""
    run = Run()
    with cd.watch() as session:
        tables, pages = TableReader(run, session), PageReader(run, session.data)

        def read_file() -> None:
            read_copy(run, session)

        readers = (tables.read_tables, tables.read_rows, tables.read_texts, pages.take_patch, pages.take_everything)
        threads = [run.repeat(Compiler(run, number).compile_one, 0.02) for number in range(COMPILERS)]
        threads += [run.repeat(work, 0.05) for work in (*readers, read_file)]
        for thread in threads:
            thread.start()
        time.sleep(seconds)
        while not run.errors and not all(run.counts[name] for name in READ):
            time.sleep(0.1)
        run.is_over.set()
        for thread in threads:
            thread.join()
    pages.take_patch()
    rows = compare_with_tables(run, session, pages)
    run.require(
        rows["compiles"] == run.counts["compiles"], f"{run.counts['compiles']} compiles, {rows['compiles']} rows"
    )
    failed = [row for row in session.status() if row["status"] == "failed" or row["dropped"]]
    run.require(not failed, f"sources failed: {failed}")
    return {
        "errors": run.errors,
        "counts": run.counts,
        "rows": {table: count for table, count in rows.items() if count},
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10)
    print(json.dumps(run_for(60 * parser.parse_args().minutes), indent=1))
