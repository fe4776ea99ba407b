"""The table of all programs: causes expected, causes found, what works, recompiles before and after."""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from .judgements import JUDGES, judge_advice
from .known_programs import FAILURES, Program, load_failures, load_programs
from .runs import run_original

_HEAD = """\
# What does not work yet: check -> program -> the first problem. `python -m tests.advice --update` writes this file.
# Each of these tests has to fail; when one passes, the line goes."""


@dataclass(frozen=True)
class Row:
    """What the harness found for one program: the problems of each check, and seconds."""

    program: Program
    problems: dict[str, list[str]]
    found: tuple[str, ...]
    after: int | None
    seconds: float


def make_row(program: Program) -> Row:
    """Run all checks of a program."""
    start = time.monotonic()
    problems = {name: judge(program) for name, judge in JUDGES.items()}
    run = run_original(program)
    found = tuple(finding["rule"] for finding in run.get("findings", ()))
    worked = [judged for judged in judge_advice(program) if not judged.problems]
    after = min((judged.recompiles for judged in worked if judged.recompiles is not None), default=None)
    return Row(program, problems, found, after, time.monotonic() - start)


def format_table(rows: list[Row]) -> str:
    """A Markdown table, and a summary."""
    head = "| program | causes | found | cause | advice | plan | recompiles |\n|---|---|---|---|---|---|---|"
    return "\n".join([head, *map(_format_row, rows), "", *_summarize(rows)])


def _format_row(row: Row) -> str:
    program = row.program
    works = {name: "no" if row.problems[name] else "yes" for name in row.problems}
    known = ", ".join(cause.rule for cause in program.causes)
    after = "?" if row.after is None else str(row.after)
    cells = [program.name, known, ", ".join(row.found), works["causes"], works["advice"], works["plan"]]
    return f"| {' | '.join(cells)} | {program.recompiles} -> {after} |"


def _summarize(rows: list[Row]) -> list[str]:
    def count(name: str) -> int:
        return sum(not row.problems[name] for row in rows)

    total, together = len(rows), sum(row.program.same_calls for row in rows)
    threads = sum(bool(row.program.threads) for row in rows)
    return [
        f"{total} programs, {threads} after users' threads, {together} with several causes at the same calls; "
        f"{sum(row.seconds for row in rows):.0f} s.",
        f"Right cause {count('causes')} of {total}, working advice {count('advice')} of {total}, "
        f"working plan {count('plan')} of {total}.",
    ]


def format_failures(rows: list[Row]) -> str:
    """The programs of which something does not work, with what compilediag printed."""
    parts = []
    for row in rows:
        failed = {name: problems for name, problems in row.problems.items() if problems}
        if failed:
            parts.append(f"## {row.program.name} ({row.program.path.name})\n")
            parts += [f"- **{name}**: {problem}" for name, problems in failed.items() for problem in problems]
            parts.append("")
    return "\n".join(parts)


def main() -> None:
    """Print the table and the failures of the programs that are named, or of all."""
    parser = argparse.ArgumentParser(prog="python -m tests.advice", description=__doc__)
    parser.add_argument("names", nargs="*", help="parts of names of programs; all programs if none is given")
    parser.add_argument("--failures", type=Path, help="file to write the failures to")
    parser.add_argument("--update", action="store_true", help="write known_failures.toml")
    parser.add_argument("--findings", action="store_true", help="also print what compilediag prints")
    options = parser.parse_args()
    rows = []
    for program in load_programs():
        if not options.names or any(name in program.name for name in options.names):
            rows.append(make_row(program))
            print(f"{program.name} {rows[-1].seconds:.2f} s", file=sys.stderr)
    print(format_table(rows))
    print(format_failures(rows))
    if options.findings:
        print("\n".join(f"# {row.program.name}\n{run_original(row.program)['plan']['text']}" for row in rows))
    if options.failures:
        options.failures.write_text(f"{format_table(rows)}\n\n{format_failures(rows)}\n")
    if options.update:
        FAILURES.write_text(format_known_failures(rows))


def format_known_failures(rows: list[Row]) -> str:
    """known_failures.toml: the checks that fail, each with the first problem. Programs that were not run are kept."""
    return list_failures(rows, _HEAD, load_failures())


def list_failures(rows: list[Row], head: str, before: dict[str, dict[str, str]]) -> str:
    """A file of known failures; `before` has those of earlier runs."""
    ran = {row.program.name for row in rows}
    parts = [head]
    for name in JUDGES:
        known = {program: why for program, why in before.get(name, {}).items() if program not in ran}
        failed = {row.program.name: row.problems[name][0] for row in rows if row.problems[name]}
        lines = [f"{program} = {json.dumps(_shorten(why))}" for program, why in sorted({**known, **failed}.items())]
        parts += ["", f"[{name}]", *lines]
    return "\n".join(parts) + "\n"


def _shorten(text: str) -> str:
    """A problem on one line, without folders and addresses that change."""
    text = " ".join(re.sub(r"/\S*/|0x\w+|\b\d{9,}\b", "", text).split())
    return text if len(text) <= 160 else text[:157] + "..."
