"""One run of a program in a process of its own: what it compiled, and whether several runs printed the same, and their
outer calls into compiled code returned the same.

Addresses, UUIDs and times are ignored. Numbers with a fraction may differ by what other kernels for the same
mathematics make of them. What differs between two runs without the plan is ignored in all runs.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import math
import re
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from ..diagnosis.evidence import group_by
from ..diagnosis.rules.graph_breaks import list_breaks
from ..errors import CompilediagError
from ..events import CacheLookup, Compile, GuardFailure, Recompile
from ..formatting import format_line, is_resumed
from ..storage.data import SessionData
from .fresh_process import CALLS_FILE, ProcessRun, ProcessRunner, ProgramJob


@dataclass(frozen=True)
class RunSummary:
    """What one run compiled; nothing is known of one that took too long.

    `compiles` counts the frames that were compiled, or tried, and `failures` the guards that failed. `functions` have
    compiled code: their names and files. `refused` counts the functions that torch failed or gave up to compile.
    `operations` are the calls in all graphs, `largest` those in the largest one, `distinct` those in the largest graph
    of each function and of each rest of one. `uncached` counts the graphs that no cache keeps because they enter
    autocast. `guards_us` is what one check of each entry takes, if it was asked for. `seen` has the guards that failed
    and the graph breaks, each by its place.
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
    operations: int = 0
    largest: int = 0
    distinct: int = 0
    uncached: int = 0
    guards_us: float = 0.0
    seen: frozenset[tuple[object, ...]] = frozenset()

    def list_lost(self, other: RunSummary) -> list[tuple[str | None, str | None]]:
        """The functions that have no compiled code of their own in the other run.

        None, if that run breaks graphs less often and has as many operations: they are in the graphs of their callers.
        """
        is_inlined = other.graph_breaks < self.graph_breaks and other.distinct >= self.distinct
        return [] if is_inlined else sorted(self.functions - other.functions, key=str)


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
    breaks = {(row.user_file, row.user_line, row.reason) for row in list_breaks(data)}
    guards = {(row.guard_source, row.guard_kind) for row in data.rows(GuardFailure)}
    return RunSummary(
        run,
        recompiles=len(data.rows(Recompile)),
        compile_seconds=sum(row.duration_s or 0.0 for row in compiles),
        graph_breaks=len(breaks),
        limits=sum(row.limit is not None for row in compiles),
        # The rest of a function after a graph break is no function of its own.
        functions=frozenset(
            (row.function, row.file) for row in compiles if row.outcome == "ok" and not is_resumed(row.function)
        ),
        compiles=sum(row.trigger == "dynamo" for row in compiles),
        failures=len(guards),
        refused=len({(row.function, row.file) for row in compiles if row.outcome in ("failed", "skipped")}),
        operations=sum(row.graph_ops or 0 for row in compiles),
        largest=max((row.graph_ops or 0 for row in compiles), default=0),
        distinct=sum(
            max(row.graph_ops or 0 for row in rows)
            for rows in group_by(compiles, lambda row: (row.function, row.file)).values()
        ),
        uncached=run.uncached
        + sum(row.outcome == "bypass" and "_enter_autocast" in (row.reason or "") for row in data.rows(CacheLookup)),
        guards_us=sum(row.guard_check_us or 0.0 for row in compiles),
        seen=frozenset[tuple[object, ...]](breaks | guards),
    )


def explain_end(run: ProcessRun) -> str | None:
    """Why the results of a run cannot be used; None if they can."""
    if run.exit_code is None:
        return f"it took more than {round(run.wall)} s and was ended"
    if run.raised is not None:
        who = "it" if run.cell is None else f"in a fresh process, Cell In[{run.cell}]"
        return f"{who} raised {run.raised}"
    if run.exit_code < 0:
        return f"it was ended by signal {-run.exit_code}"
    return None


#: Relative and absolute difference of two printed numbers with a fraction.
_RELATIVE, _ABSOLUTE = 1e-3, 1e-4
#: A longer line is compared in parts.
_MAX_LINE = 1 << 16
_NUMBER = r"[-+]?\d+(?:\.\d*)?(?:[eE][-+]?\d+)?"
_TIME_UNIT = r"\s?(?:[nµμum]?s|secs?|seconds?|ms|mins?|minutes?|hours?|h|it/s|s/it|[a-z]+/s(?:ec)?)\b"
_TOKEN = re.compile(
    r"(?P<chance>0x[0-9a-fA-F]+"  # an address
    r"|\b[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\b"  # a UUID
    r"|\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?)?|\d+:\d\d(?::\d\d)?(?:[.,]\d+)?"  # a date, a clock
    rf"|{_NUMBER}{_TIME_UNIT})"  # a time or a rate, with its unit
    rf"|(?P<number>{_NUMBER})"
)


@dataclass(frozen=True)
class OutputComparison:
    """Whether the output is the same; None if it could not be compared. `note` says in one line what differs, or why
    it was not compared.
    """

    is_same: bool | None
    note: str | None = None


#: A part of a line: text, a number, or None for what is ignored.
_Part = str | float | None


def compare_outputs(
    without: Sequence[Path],
    with_plan: Sequence[Path],
    is_cut: bool = False,
    names: tuple[str, str] = ("without the plan", "with the plan"),
) -> OutputComparison:
    """Compare the output files of runs with a plan with those of runs without it, or of other two sides with `names`.
    `is_cut`: some runs were ended earlier, so only the lines that all have are compared.
    """
    with contextlib.ExitStack() as stack:
        streams = [stack.enter_context(file.open("rb")) for file in (*without, *with_plan)]
        readers = [iter(partial(stream.readline, _MAX_LINE), b"") for stream in streams]
        together = zip(*readers, strict=False) if is_cut else itertools.zip_longest(*readers)
        for number, lines in enumerate(together, 1):
            base, others = lines[: len(without)], lines[len(without) :]
            if None in base and any(line is not None for line in base):
                return OutputComparison(None, f"two runs {names[0]} print different numbers of lines")
            found = _compare_line(base, others, names[1])
            if found is not None and len(without) > 1:
                return OutputComparison(False, f"the output differs in line {number}: {found}")
            if found is not None:
                return OutputComparison(None, f"the output differs in line {number}, maybe by chance: use --runs 2")
    return OutputComparison(True)


def _compare_line(base: Sequence[bytes | None], others: Sequence[bytes | None], name: str) -> str | None:
    """How a line of a run on the second side, which has the name, differs from the same line on the first; None if it
    does not.
    """
    expected = base[0]
    if all(line == expected for line in others):
        return None
    if expected is None:
        return f"it has more lines {name}"
    if None in others:
        return f"it has fewer lines {name}"
    known = [_split(line) for line in base if line is not None]
    if len({len(parts) for parts in known}) > 1:
        return None  # The line has other parts in each run of the first side.
    mask = [all(_is_near(parts[0], part) for part in parts) for parts in zip(*known, strict=True)]
    for line in others:
        if line is not None and not _is_alike(known[0], _split(line), mask):
            shown = (format_line(text.decode(errors="replace"), 60) for text in (expected, line))
            return " was ".join(f"`{text}`" for text in reversed(list(shown)))
    return None


def _split(line: bytes) -> list[_Part]:
    """A line as texts, numbers and ignored parts, in turn."""
    text = line.decode(errors="replace")
    parts: list[_Part] = []
    at = 0
    for match in _TOKEN.finditer(text):
        parts += [text[at : match.start()], None if match["chance"] else _read_number(match["number"])]
        at = match.end()
    return [*parts, text[at:]]


def _read_number(text: str) -> str | float:
    """A number with a fraction as a float; an integer as its text, because it is compared exactly."""
    return float(text) if any(character in text for character in ".eE") else text


def _is_alike(expected: list[_Part], found: list[_Part], mask: list[bool]) -> bool:
    if len(expected) != len(found):
        return False
    return all(not keep or _is_near(a, b) for a, b, keep in zip(expected, found, mask, strict=True))


def _is_near(one: _Part, other: _Part) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=_RELATIVE, abs_tol=_ABSOLUTE)
    return one == other


# What the outer calls returned

#: Relative difference of two sums or norms that other kernels for the same mathematics make, by dtype.
_TOLERANCE = 1e-3
_LOW_PRECISION = {"torch.bfloat16": 2e-2, "torch.float16": 5e-3}


@dataclass(frozen=True)
class OuterCalls:
    """The outer calls of a run, in their order.

    `count` is their number, of which the first have `begins` (ns of the wall clock), `durations` (ns) and `digests`.
    `last_compile` is the number of the call at which something was compiled last; 0 without one.
    """

    count: int = 0
    begins: tuple[int, ...] = ()
    durations: tuple[int, ...] = ()
    digests: tuple[Any, ...] = ()
    last_compile: int = 0

    @property
    def warm_s(self) -> float | None:
        """Median duration (s) of the calls after the last compile; None if there are fewer than three."""
        warm = self.durations[self.last_compile :]
        return statistics.median(warm) / 1e9 if len(warm) >= 3 else None


def read_calls(session: Path) -> OuterCalls | None:
    """The outer calls of the run that recorded this session; None if they were not observed."""
    try:
        found = json.loads((session.parent / CALLS_FILE).read_text())
        begins, durations, digests = zip(*found["calls"], strict=True) if found["calls"] else ((), (), ())
    except (OSError, ValueError, KeyError, TypeError):
        return None
    last = max((row.time_ns for row in SessionData(session).rows(Compile)), default=0)
    return OuterCalls(found["count"], begins, durations, digests, sum(begin <= last for begin in begins))


def find_other_result(without: Sequence[OuterCalls], changed: OuterCalls) -> int | None:
    """The number of the first call that returned something else than in the unchanged runs; None if none did.

    Calls whose results differ between the unchanged runs are passed over, and so is what one of the runs has not.
    """
    first = without[0].digests
    for number, (expected, found) in enumerate(zip(first, changed.digests, strict=False), 1):
        known = [one.digests[number - 1] for one in without[1:] if number <= len(one.digests)]
        if all(_is_same(expected, one) for one in known) and not _is_same(expected, found):
            return number
    return None


def _is_same(one: list[Any], other: list[Any]) -> bool:
    return len(one) == len(other) and all(map(_is_same_digest, one, other))


def _is_same_digest(one: list[Any], other: list[Any]) -> bool:
    """Two digests of a tensor, `[shape, dtype, sum, norm]`, or of a number."""
    if len(one) == len(other) == 4 and one[:2] == other[:2]:
        allowed = _LOW_PRECISION.get(one[1], _TOLERANCE)
        # A sum can cancel out, so its difference is compared with the norm.
        size = max(abs(one[3]), abs(other[3]), 1e-6)
        count = math.prod(one[0]) or 1
        return _is_close(one[3], other[3], allowed, 1e-6) and _is_close(
            one[2], other[2], allowed, allowed * size * math.sqrt(count)
        )
    return one == other


def _is_close(one: float, other: float, relative: float, absolute: float) -> bool:
    return (math.isnan(one) and math.isnan(other)) or math.isclose(one, other, rel_tol=relative, abs_tol=absolute)
