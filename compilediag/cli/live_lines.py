"""A running job as plain lines, one per change: for logs, pipes and terminals without rich."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

from compilediag.formatting import format_seconds
from compilediag.views.live_status import (
    CompileInFlight,
    JobStatus,
    ProcessStatus,
    answer_hung_or_compiling,
    describe_compile,
    describe_recompile,
)

#: A compile, or the time without one, is reported again after so many seconds, then after twice as many, and so on.
FIRST_REPORT_S = 30.0


class LiveLines:
    """Compares each state of a job with the one before it."""

    def __init__(self) -> None:
        self._known: dict[tuple[Path, int | None], ProcessStatus] = {}
        self._headline = ""
        self._next_report_s = FIRST_REPORT_S
        self._reported_since = 0

    def describe(self, job: JobStatus) -> list[str]:
        """One line per change, each with the time."""
        lines = [f"{process.name}: {line}" for process in job.processes for line in self._describe_process(process)]
        if job.plan.steps and job.plan.headline != self._headline:
            self._headline = job.plan.headline
            lines.append(f"plan: {self._headline}")
        lines = lines or list(self._describe_silence(job))
        now = time.strftime("%H:%M:%S", time.localtime(job.now_ns / 1e9))
        return [f"{now} {line}" for line in lines]

    def _describe_process(self, process: ProcessStatus) -> Iterator[str]:
        key = (process.path, process.pid)
        before = self._known.get(key)
        self._known[key] = process
        if before is None:
            yield (
                f"process {process.pid} is recorded"
                if process.is_live
                else f"process {process.pid} has {process.ending}"
            )
        yield from _describe_rows(process, before)
        running = before.in_flight if before else ()
        begun = {(frame.function, frame.started_ns) for frame in running}
        if process.is_live:
            yield from (f"compiling {_format(f)}" for f in process.in_flight if (f.function, f.started_ns) not in begun)
        if before is not None and before.is_live and not process.is_live:
            yield process.ending

    def _describe_silence(self, job: JobStatus) -> Iterator[str]:
        """Now and then, when nothing changes: whether the job compiles or stands still."""
        times = [_get_last_change(process) for process in job.processes if process.is_live]
        if not times:
            return
        since = max(times)
        if since != self._reported_since:
            self._reported_since, self._next_report_s = since, FIRST_REPORT_S
        if job.measure(since) >= self._next_report_s:
            self._next_report_s *= 2
            yield answer_hung_or_compiling(job)


def _describe_rows(process: ProcessStatus, before: ProcessStatus | None) -> Iterator[str]:
    """The new compiles and recompiles in the order of their events."""
    recompiles = process.recompiles[len(before.recompiles) if before else 0 :]
    compiles = process.compiles[len(before.compiles) if before else 0 :]
    lines = [(row.event_id or 0, f"recompiles {describe_recompile(row)}") for row in recompiles]
    lines += [(row.event_id or 0, describe_compile(row)) for row in compiles]
    yield from (line for _, line in sorted(lines))


def _get_last_change(process: ProcessStatus) -> int:
    return max([process.quiet_since_ns, *(frame.started_ns for frame in process.in_flight)])


def _format(frame: CompileInFlight) -> str:
    usual = f" (the last time: {format_seconds(frame.before_s)})" if frame.before_s else ""
    return f"{frame.function}{usual}"
