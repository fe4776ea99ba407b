"""A running job as a screen that rich draws. This module is imported when a screen is shown: rich is optional."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

from rich import box
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from compilediag.formatting import escape_controls, format_amount, format_count, format_line, format_seconds
from compilediag.views.live_status import (
    JobStatus,
    ProcessStatus,
    answer_hung_or_compiling,
    describe_activity,
    describe_cold_ranks,
    describe_recompile,
    describe_warmup,
)

#: Rows that the other parts of the screen take; the table of processes gets the rest.
OTHER_ROWS = 21
MIN_PROCESSES = 4
#: Below so many columns the table of processes has fewer.
NARROW = 90


@contextlib.contextmanager
def open_screen() -> Iterator[Callable[[JobStatus], None]]:
    """What draws the state of a job, until the end of the block: then the screen is removed."""
    with Live(console=Console(), transient=True, auto_refresh=False) as live:
        console = live.console
        yield lambda job: live.update(
            draw_job(job, max(MIN_PROCESSES, console.height - OTHER_ROWS), console.width), refresh=True
        )


def draw_job(job: JobStatus, max_processes: int, width: int) -> RenderableType:
    """The whole screen: processes, the answer to "hung or compiling?", the last recompiles, and the plan so far."""
    compiles, recompiles = (sum(len(getattr(p, n)) for p in job.processes) for n in ("compiles", "recompiles"))
    counts = f"{format_amount(compiles, 'compile')}, {format_amount(recompiles, 'recompile')}"
    parts: list[RenderableType] = [
        Text.assemble(("compilediag live ", "bold"), escape_controls(job.title), f"  {counts}"),
        _draw_processes(job, max_processes, width < NARROW),
        _make_text(answer_hung_or_compiling(job), "bold"),
    ]
    parts += [_make_text(text) for text in (describe_warmup(job), describe_cold_ranks(job)) if text]
    if job.recompiles:
        table = Table(title="last recompiles", box=None, title_justify="left", title_style="bold", padding=(0, 2, 0, 0))
        for _ in range(3):
            table.add_column()
        for name, row in job.recompiles:
            lost = "" if row.lost_s is None else format_seconds(row.lost_s)
            table.add_row(_make_text(name), _make_text(lost), _make_text(describe_recompile(row)))
        table.show_header = False
        parts += ["", table]
    parts += ["", _make_text(f"plan so far: {job.plan.headline}", "bold")]
    for number, step in enumerate(job.plan.steps[:3], 1):
        where = ": ".join(filter(None, (step.place, format_line(step.code or "", 60))))
        parts.append(_make_text(f"{number}. {where or 'place not known'}"))
        parts.append(_make_text(f"   {format_line(step.what)}"))
        parts.append(_make_text(f"   {format_line(step.change.splitlines()[0] if step.change else '')}", "green"))
    if len(job.plan.steps) > 3:
        parts.append(_make_text(f"... and {len(job.plan.steps) - 3} more steps"))
    return Group(*parts)


def _draw_processes(job: JobStatus, most: int, is_narrow: bool) -> RenderableType:
    """One row per process; of many, those that compile longest or were killed."""
    table = Table(box=box.SIMPLE_HEAD, expand=True, pad_edge=False)
    table.add_column("process", no_wrap=True)
    table.add_column("now", ratio=1, overflow="fold")
    table.add_column("for", justify="right", no_wrap=True)
    table.add_column("compiles", justify="right", no_wrap=True)
    if not is_narrow:
        table.add_column("recompiles", justify="right", no_wrap=True)
        table.add_column("compiling", justify="right", no_wrap=True)
        table.add_column("phase", overflow="fold", max_width=30)
    shown = [*job.processes]
    if len(shown) > most:
        shown.sort(key=lambda each: each.in_flight[0].started_ns if each.in_flight else each.quiet_since_ns)
        shown.sort(key=lambda each: (not each.was_killed, not each.in_flight))
    for process in shown[:most]:
        is_compiling = process.is_live and process.in_flight
        style = "red" if process.was_killed else "bold cyan" if is_compiling else ""
        table.add_row(*_make_row(process, job)[: len(table.columns)], style=style)
    if len(shown) > most:
        table.add_row("", f"... and {len(shown) - most} more processes")
    return table


def _make_text(text: str, style: str = "") -> Text:
    """A text of the job with escaped control characters. rich does not interpret markup in a `Text`."""
    return Text(escape_controls(text), style)


def _make_row(process: ProcessStatus, job: JobStatus) -> tuple[RenderableType, ...]:
    """The cells in the order of the columns; a narrow screen shows the first four."""
    frame = process.in_flight[0] if process.in_flight and process.is_live else None
    seconds = job.measure(frame.started_ns if frame else process.quiet_since_ns)
    return (
        _make_text(process.name),
        _make_text(describe_activity(process)),
        _make_text(_format_clock(seconds) if process.is_live else ""),
        _make_text(format_count(len(process.compiles))),
        _make_text(format_count(len(process.recompiles))),
        _make_text(format_seconds(process.compile_s)),
        _make_text((frame.phase if frame else None) or ""),
    )


def _format_clock(seconds: float) -> str:
    """A time that counts up: `0:07`, `12:30`, `1:02:03`."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
