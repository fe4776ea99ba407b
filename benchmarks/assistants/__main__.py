"""Compare what a command line assistant achieves with TORCH_LOGS, with tlparse's output, and with our findings.

python benchmarks/assistants                                  # the scripted baseline, three sources, all programs
python benchmarks/assistants --assistant 'my-assistant run {task}' --source findings
python benchmarks/assistants pose_tracker --keep /tmp/kept    # one program; its files are kept

For each program and source, a copy of the program is put into a folder with TASK.md and ./diagnose. The assistant works
in that folder: {task} in its command is the text of TASK.md, without it the text goes to its standard input. When it
ends, the program is measured with torch alone and compared with the change that was made by hand.

solved: no more compiles, graph breaks and refused functions than by hand, and the same result
runs: how often the program ran for it, the runs of `compilediag fix` included
read: characters that ./diagnose printed
wrong edits: versions of the program (each that was run, and the last) that fail, compute something else, or cost more
"""

from __future__ import annotations

import argparse
import hashlib
import json
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from pathlib import Path

from diagnose import SOURCES, Desk, find_tlparse
from measure import FOLDER, Figures, Program, copy_program, measure, measure_copy, read_programs

BASELINE = f"{shlex.quote(sys.executable)} {shlex.quote(str(FOLDER / 'baseline.py'))}"
MORE = {
    "logs": "It prints what the program prints, with TORCH_LOGS=recompiles,graph_breaks.",
    "tlparse": "It prints what the program prints, and the first page of tlparse's report as text. "
    "`./diagnose show NAME` prints another file of the report.",
    "findings": "It prints what the program prints, and what compilediag found, as JSON (compilediag.findings/1). "
    "`./diagnose more FINGERPRINT` prints the findings after that one, if some were left out. `./diagnose fix` prints "
    "what `compilediag fix` has found; it runs the program several times.",
}
TASK = """\
program.py uses torch.compile, and spends time on compiling that it need not spend. Find out why, and change the
program: as few compiles, graph breaks and functions at the recompile limit as possible. It must compute the same, still
be compiled, and print the same last line ("result: ..."). Make the smallest change that a maintainer would accept: do
not raise limits, skip guards or turn off the compiler. Change the files in this folder only.

`./diagnose` runs program.py. {more}
Run the program with ./diagnose only. You are done when you end.
"""


@dataclass(frozen=True)
class Score:
    """What an assistant achieved for one program with one source."""

    program: str
    source: str
    solved: bool
    runs: int
    read: int
    wrong_edits: int
    ended: str
    before: Figures
    after: Figures
    by_hand: Figures


def main() -> None:
    """Run the assistant on the programs and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="programs; default: all")
    parser.add_argument("--assistant", default=BASELINE, help="its command; default: the scripted baseline")
    parser.add_argument("--source", choices=SOURCES, action="append", help="can be repeated; default: all three")
    parser.add_argument("--jobs", type=int, default=1, help="programs at a time; default: 1")
    parser.add_argument("--minutes", type=float, default=15, help="most minutes for one program; default: 15")
    parser.add_argument("--keep", type=Path, help="a new folder for the versions of the programs and the output")
    parser.add_argument("--json", type=Path, help="write the scores to this file")
    options = parser.parse_args()
    programs = read_programs()
    names = [program.name for program in programs]
    if unknown := set(options.names) - set(names):
        parser.error(f"no such program: {', '.join(sorted(unknown))}")
    sources = options.source or SOURCES
    if "tlparse" in sources:
        find_tlparse()
    scores: list[Score] = []
    print("| program | before | by hand |", " | ".join(sources), "|")
    print("|---|---|---|" + "---|" * len(sources))

    def score_all(program: Program) -> list[Score]:
        before, by_hand = measure_copy(program.folder), measure_copy(program.folder, is_patched=True)
        return [score(program, source, options, before, by_hand) for source in sources]

    with ThreadPoolExecutor(options.jobs) as pool:
        chosen = (program for program in programs if program.name in (options.names or names))
        for done in as_completed([pool.submit(score_all, program) for program in chosen]):
            row = done.result()
            scores += row
            cells = [row[0].program, *map(write_figures, (row[0].before, row[0].by_hand)), *map(write_score, row)]
            print(f"| {' | '.join(cells)} |", flush=True)
            if options.json:
                options.json.write_text(json.dumps([asdict(score) for score in scores], indent=1))
    print_totals(scores, sources)


def score(program: Program, source: str, options: argparse.Namespace, before: Figures, by_hand: Figures) -> Score:
    """Let an assistant work on a copy of the program, then measure each of its versions."""
    with tempfile.TemporaryDirectory() as temporary:
        desk = Desk(Path(temporary) / program.name, Path(temporary) / "state")
        set_up(desk, program, source)
        ended, output = let_work(desk, options.assistant, (desk.work / "TASK.md").read_text(), options.minutes * 60)
        versions = list({digest(folder): folder for folder in [*desk.versions[1:], desk.work]}.values())
        unchanged = digest(program.folder)
        measured = {digest(folder): measure(folder) for folder in versions if digest(folder) != unchanged}
        after = measured.get(digest(desk.work), before)
        if options.keep:
            kept = Path(shutil.copytree(temporary, options.keep / source / program.name))
            (kept / "output").write_text(output)
        return Score(
            program.name,
            source,
            after.reaches(by_hand),
            desk.count("runs"),
            desk.count("read"),
            sum(figures.is_worse_than(before) for figures in measured.values()),
            ended,
            before,
            after,
            by_hand,
        )


def set_up(desk: Desk, program: Program, source: str) -> None:
    """Fill the folder that the assistant works in."""
    copy_program(program.folder, desk.work)
    (desk.state / "versions").mkdir(parents=True)
    (desk.work / "TASK.md").write_text(TASK.format(more=MORE[source]))
    start = [sys.executable, str(FOLDER / "diagnose.py"), str(desk.work), str(desk.state), source]
    script = desk.work / "diagnose"
    script.write_text(f'#!/bin/sh\nexec {shlex.join(start)} "$@"\n')
    script.chmod(0o755)


def let_work(desk: Desk, assistant: str, task: str, seconds: float) -> tuple[str, str]:
    """Run the assistant; how it ended, and what it printed."""
    command = [task if word == "{task}" else word for word in shlex.split(assistant)]
    try:
        done = subprocess.run(
            command,
            cwd=desk.work,
            input="" if task in command else task,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=seconds,
        )
    except subprocess.TimeoutExpired as error:
        return "time", (error.stdout or b"").decode(errors="replace")
    return ("done" if done.returncode == 0 else f"exit code {done.returncode}"), done.stdout


def digest(folder: Path) -> str:
    """Names a version of a program: the same text in all its files."""
    found = hashlib.sha256()
    for path in sorted(folder.rglob("*.py")):
        found.update(f"{path.relative_to(folder)}\0".encode() + path.read_bytes())
    return found.hexdigest()


def write_figures(figures: Figures) -> str:
    """Compiles / graph breaks / refused functions of a run."""
    return f"{figures.compiles} / {figures.graph_breaks} / {figures.refused}"


def write_score(score: Score) -> str:
    """One cell of the table."""
    ended = "" if score.ended == "done" else f", {score.ended}"
    return (
        f"{'solved' if score.solved else write_figures(score.after)}, {score.runs} runs, {score.read:,} read, "
        f"{score.wrong_edits} wrong{ended}"
    )


def print_totals(scores: list[Score], sources: list[str] | tuple[str, ...]) -> None:
    """The sums and medians of each source."""
    print("\n| source | solved | runs | characters read, median | wrong edits |\n|---|---|---|---|---|")
    for source in sources:
        rows = [score for score in scores if score.source == source]
        print(
            f"| {source} | {sum(row.solved for row in rows)} of {len(rows)} | {sum(row.runs for row in rows)} "
            f"| {statistics.median(row.read for row in rows):,.0f} | {sum(row.wrong_edits for row in rows)} |"
        )


if __name__ == "__main__":
    main()
