"""One run of a program in a process of its own, and what it compiled."""

from __future__ import annotations

from dataclasses import dataclass

from ..errors import CompilediagError
from ..events import Compile, GraphBreak, GuardFailure, Recompile
from ..formatting import format_line
from ..storage.data import SessionData
from .fresh_process import ProcessRun, ProcessRunner, ProgramJob


@dataclass(frozen=True)
class RunSummary:
    """What one run compiled; nothing is known of one that took too long.

    `compiles` counts the frames that were compiled, or tried, and `failures` the guards that failed. `functions` have
    compiled code: their names and files. `refused` counts the functions that torch failed or gave up to compile.
    """

    run: ProcessRun
    recompiles: int = 0
    compile_seconds: float = 0.0
    graph_breaks: int = 0
    limits: int = 0
    functions: frozenset[tuple[str | None, str | None]] = frozenset()
    compiles: int = 0
    failures: int = 0
    refused: int = 0


def measure(runner: ProcessRunner, job: ProgramJob, what: str) -> RunSummary:
    """Run a job to its end. CompilediagError if its process does not start."""
    run = runner.run(job, what)
    if run.problem is not None:
        raise CompilediagError(run.problem)
    if run.exit_code is None:
        return RunSummary(run)
    if not run.session.exists():
        raise CompilediagError(f"the process of {job.script} did not start: {format_line(run.last_error, 200)}")
    data = SessionData(run.session)
    compiles = data.rows(Compile)
    return RunSummary(
        run,
        recompiles=len(data.rows(Recompile)),
        compile_seconds=sum(row.duration_s or 0.0 for row in compiles),
        graph_breaks=len({(row.user_file, row.user_line, row.reason) for row in data.rows(GraphBreak)}),
        limits=sum(row.limit is not None for row in compiles),
        functions=frozenset((row.function, row.file) for row in compiles if _has_code(row)),
        compiles=sum(row.trigger == "dynamo" for row in compiles),
        failures=len({(row.guard_source, row.guard_kind) for row in data.rows(GuardFailure)}),
        refused=len({(row.function, row.file) for row in compiles if row.outcome in ("failed", "skipped")}),
    )


def _has_code(row: Compile) -> bool:
    """True for a function that was compiled. The rest of a function after a graph break is none of its own."""
    return row.outcome == "ok" and not (row.function or "").startswith("torch_dynamo_resume_in")


def explain_end(run: ProcessRun) -> str | None:
    """Why the results of a run cannot be used; None if they can."""
    if run.exit_code is None:
        return f"it was ended after {round(run.wall)} s (--timeout)"
    if run.raised is not None:
        who = "it" if run.cell is None else f"in a fresh process, Cell In[{run.cell}]"
        return f"{who} raised {run.raised}"
    if run.exit_code < 0:
        return f"it was ended by signal {-run.exit_code}"
    return None
