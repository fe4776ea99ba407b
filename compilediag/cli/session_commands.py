"""The commands that work on what was recorded: plan, findings, report, ranks, diff, coldstart, export, example, repro,
ingest, check, last.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import secrets
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from compilediag.errors import INTERRUPTED, CompilediagError
from compilediag.formatting import format_names
from compilediag.system.arguments import SuggestingParser, find_closest, suggest
from compilediag.system.files import HISTORY, REPRO, SARIF, check_output, make_absolute, write_file
from compilediag.system.program import RunningProgram, describe_command, read_program

from .command import (
    FINDINGS,
    Command,
    add_json_argument,
    drop_dashes,
    get_budget,
    make_number_type,
    print_document,
    print_text,
    print_written,
)
from .fix_command import FixCommand

if TYPE_CHECKING:
    from compilediag.diagnosis.gate import Baseline, Broken
    from compilediag.session import Session

#: What `load_any` opens.
ANY_SESSION = "a session file (.cdiag), a folder of them, or logs"
FORMATS = ("perfetto", "speedscope", "parquet", "csv", "markdown", "sarif")


class PlanCommand(Command):
    """Print the changes that save the most compile seconds, and what each of them saves.

    Examples:

      compilediag plan run.cdiag                     the plan as text
      compilediag plan run.cdiag --code              only the block of code to paste
      compilediag plan run.cdiag --patch > fix.diff  the same as a diff of your files
      compilediag plan run.cdiag --warmup warmup.py  a script that fills torch's caches for the next process

    Exit code 1 if --patch is given and your files were changed since the recording, or the plan has no code.
    """

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("session", metavar="SESSION", help=ANY_SESSION)
        form = parser.add_mutually_exclusive_group()
        form.add_argument("--code", action="store_true", help="print only the block of code to paste")
        form.add_argument("--patch", action="store_true", help="print a unified diff of your files")
        add_json_argument(parser, "plan/1", form)
        form.add_argument(
            "--warmup", metavar="OUT.py", help="write a script that compiles the same again and saves torch's caches"
        )
        parser.add_argument(
            "--distributed",
            action="store_true",
            help="with --warmup: torchrun starts the script, and each rank saves its own",
        )

    def run(self, args: argparse.Namespace) -> int:
        from compilediag.diagnosis.plan import describe_missing
        from compilediag.session import load_any

        session = load_any(args.session)
        if args.warmup:
            return print_written(session.warmup(args.warmup, args.distributed))
        plan = session.plan()
        if args.patch:
            patch = plan.patch()
            if patch is None:
                print("compilediag: no patch: your files were changed since, or the plan has no code", file=sys.stderr)
                return 1
            print(patch, end="")
            if missing := describe_missing(plan):
                print(f"compilediag: {missing[:1].lower()}{missing[1:]}", file=sys.stderr)
        elif args.json:
            from compilediag.views.json_documents import PlanDocument

            print_document(PlanDocument(**plan.to_dict()), args.budget)
        else:
            print_text(plan.code() if args.code else str(plan))
        return 0


class FindingsCommand(Command):
    """Print what cost compile time, why, and what to change, most important first; with --json for other programs.

    The JSON is a document of the schema compilediag.findings/1, and nothing else is on the standard output. Examples:

      compilediag findings run.cdiag
      compilediag findings run.cdiag --json | jq .verdict
      compilediag findings run.cdiag --json --budget 20000
    """

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("session", metavar="SESSION", help=ANY_SESSION)
        add_json_argument(parser, FINDINGS)
        parser.add_argument("--after", metavar="FINGERPRINT", help="continue after this finding")
        parser.add_argument("--only", metavar="FINGERPRINT", help="only this finding")

    def run(self, args: argparse.Namespace) -> int:
        from compilediag.session import load_any
        from compilediag.views.findings_document import format_findings, make_findings_document

        data = load_any(args.session).data
        document = make_findings_document(data, args.session, get_budget(args), args.after, args.only)
        if args.json:
            print_document(document)
        else:
            print_text(format_findings(data, document))
        return 0


class ReportCommand(Command):
    """Write a saved session as one offline HTML file.

    The file contains everything it shows and loads nothing from the network. Examples:

      compilediag report run.cdiag                  run.html, in the current folder
      compilediag report ranks/ -o job.html
    """

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("session", metavar="SESSION", help="a session file (.cdiag), or a folder of them")
        parser.add_argument("-o", "--output", dest="report", metavar="OUT.html", help="the file to write")
        parser.add_argument("--redact", action="store_true", help="leave out code, values and paths")

    def run(self, args: argparse.Namespace) -> int:
        import compilediag as cd

        output = args.report or f"{Path(args.session).absolute().stem}.html"
        return print_written(cd.load(args.session).report(output, redact=args.redact))


class RanksCommand(Command):
    """Show where the ranks of a distributed job first diverge, and which are slow.

    SESSION is a session file (.cdiag), a folder of the ranks' session files, a folder that `ingest --dask` wrote, or
    TORCH_TRACE logs.
    """

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("session", metavar="SESSION", help="a session, a folder of them, or logs")
        add_json_argument(parser, "ranks/1")

    def run(self, args: argparse.Namespace) -> int:
        from compilediag.session import load_any

        found = load_any(args.session).ranks()
        if args.json:
            from compilediag.views.json_documents import RanksDocument

            print_document(RanksDocument(tuple(found.rows), tuple(found.divergences)), args.budget)
        else:
            print_text(found.summary(), end="")
        return 0


class DiffCommand(Command):
    """Compare two sessions: what is new, gone or changed.

    Each is a session file (.cdiag), a folder of them, a TORCH_TRACE log or a folder of logs.
    """

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("before", metavar="BEFORE", help="a session or logs")
        parser.add_argument("after", metavar="AFTER", help="the session or logs to compare with it")
        parser.add_argument("--report", metavar="OUT.html", help="write the differences as one offline HTML file")
        add_json_argument(parser, "diff/1")

    def run(self, args: argparse.Namespace) -> int:
        import compilediag as cd

        found = cd.diff(args.before, args.after)
        if args.json:
            print_document(found.document(args.before, args.after), args.budget)
        else:
            print_text(found.summary(), end="")
        return print_written(found.report(args.report)) if args.report else 0


class ColdstartCommand(Command):
    """Say why a start compiled what an earlier one found in its caches: the first difference, and what it cost.

    Record both starts in full detail, or with TORCH_TRACE. GOOD can also be the folder of its caches, which shows only
    whether an entry is there.

      compilediag run --save warm.cdiag serve.py    # in the container that starts fast
      compilediag run --save cold.cdiag serve.py    # in the one that does not
      compilediag coldstart warm.cdiag cold.cdiag
    """

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("good", metavar="GOOD", help="a session or logs; or a folder of Inductor's caches")
        parser.add_argument("bad", metavar="BAD", help="the session or logs of the start that compiled")
        add_json_argument(parser, "coldstart/1")

    def run(self, args: argparse.Namespace) -> int:
        import compilediag as cd

        found = cd.coldstart(args.good, args.bad)
        if args.json:
            from compilediag.views.json_documents import ColdStartDocument, list_cold_causes, list_loaded_values

            causes, artifacts = list_cold_causes(found.causes), list_loaded_values(found.found.artifacts)
            document = ColdStartDocument(*found.seconds, found.found.served, found.found.environment, causes, artifacts)
            print_document(document, args.budget)
        else:
            print_text(found.summary(), end="")
        return 0


class ExportCommand(Command):
    """Write a session for other tools: a timeline, a profile of tracing, tables, Markdown for an issue, SARIF.

    perfetto:   one JSON file, a timeline of compiles and phases; open it at https://ui.perfetto.dev.
    speedscope: one JSON file, the seconds that Dynamo traced each function; open it at https://www.speedscope.app.
    parquet:    a folder with one file per table, for pandas, polars, DuckDB, Spark; needs pyarrow.
    csv:        a folder with one file per table, for spreadsheets.
    markdown:   environment, plan and recompiles for an issue; it is printed if there is no -o. Code, values and paths
                are left out, unless --no-redact is given.
    sarif:      one file in SARIF 2.1.0: the findings at your lines, for code scanning and editors. Paths are relative
                to $GITHUB_WORKSPACE, or to the working directory.

    docs/tables.md describes the tables and their columns. Examples:

      compilediag export run.cdiag -o run.json
      compilediag export run.cdiag -o tracing.json --format speedscope
      compilediag export run.cdiag -o tables --format parquet
      compilediag export run.cdiag --format markdown | gh issue create --title "Slow compile" --body-file -
    """

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("session", metavar="SESSION", help=ANY_SESSION)
        parser.add_argument("-o", "--output", metavar="PATH", help="the file or folder to write")
        parser.add_argument("--format", choices=FORMATS, default="perfetto", help="format (default: %(default)s)")
        parser.add_argument("--no-redact", action="store_true", help="keep code, values and paths in the Markdown")

    def run(self, args: argparse.Namespace) -> int:
        is_markdown = args.format == "markdown"
        if args.output is None and not is_markdown:
            raise CompilediagError(f"format {args.format!r} needs a file or folder to write: -o PATH")
        redact = not args.no_redact if is_markdown else None

        from compilediag.session import load_any

        session = load_any(args.session)
        if args.output is not None:
            return print_written(session.export(args.output, args.format, redact))
        from compilediag.views.export import make_markdown

        print_text(make_markdown(session.data, bool(redact)), end="")
        return 0


class ExampleCommand(Command):
    """Print a worked example of a finding: a small program, what compilediag prints for it, and the changes that work.

    Examples:

      compilediag example               the rules that have an example
      compilediag example size_changes
    """

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("rule", metavar="RULE", nargs="?", help="the rule of a finding, such as size_changes")

    def run(self, args: argparse.Namespace) -> int:
        from compilediag.diagnosis.registry import load_examples

        examples = load_examples()
        if args.rule is None:
            width = max(map(len, examples))
            print("\n".join(f"{rule:<{width}}  {example.symptom}" for rule, example in examples.items()))
        elif args.rule in examples:
            print(examples[args.rule])
        else:
            closest = find_closest(args.rule, examples)
            meant = f"did you mean {closest!r}?" if closest else "`compilediag example` lists the rules that have one"
            raise CompilediagError(f"no example of {args.rule!r}; {meant}")
        return 0


class ReproCommand(Command):
    """Write a script of two calls with fake inputs, at the second of which the guard of a recompile fails again.

    The function of the script is not the program's: it only reads the same value. Without EVENT, the recompile is the
    one that cost most among those that can be reproduced. Examples:

      compilediag repro run.cdiag                        print the script
      compilediag repro run.cdiag 17 -o repro.py --run

    Exit code 1 if --run is given and the same guard did not fail.
    """

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("session", metavar="SESSION", help=ANY_SESSION)
        parser.add_argument("event", metavar="EVENT", nargs="?", type=int, help="the event id of a recompile")
        parser.add_argument("-o", "--output", metavar="OUT.py", help="the file to write")
        parser.add_argument("--run", action="store_true", help="run the script, and say whether the same guard failed")

    def run(self, args: argparse.Namespace) -> int:
        from compilediag.session import load_any

        text = load_any(args.session).repro(args.event)
        target = None if args.output is None else make_absolute(args.output)
        if target is not None:
            check_output(target, REPRO)
        if args.run and not _run_repro(text):
            print_text("the same guard did not fail, so nothing is written")
            return 1
        if target is not None:
            write_file(target, text)
            print_written(target)
        print_text("the same guard failed\n" if args.run else text if target is None else "", end="")
        return 0


def _run_repro(text: str) -> bool:
    """Run a script in a process of its own; True if it recompiled once, for the guard that its GUARD names."""
    from compilediag.session import load
    from compilediag.views.repro import read_guard

    with tempfile.TemporaryDirectory(prefix="compilediag-") as folder:
        script, recorded = Path(folder) / "repro.py", Path(folder) / "repro.cdiag"
        write_file(script, text)
        command = [sys.executable, "-m", "compilediag", "run", "--save", str(recorded), str(script)]
        ended = subprocess.run(command, env={**os.environ, HISTORY: "off"}, capture_output=True)
        if ended.returncode != 0 or not recorded.exists():
            return False
        recompiles = load(recorded).recompiles
        found = list(zip(recompiles["guard_kind"], recompiles["guard_source"], strict=True))
    return found == [read_guard(text)]


class IngestCommand(Command):
    """Read TORCH_TRACE logs into a session file.

    Reads logs of torch 2.4 and later, plain or compressed with gzip or zstd. If the command is interrupted, run it
    again and it continues. Exit code 1 if --strict is given and something could not be read.
    """

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("paths", metavar="PATH", nargs="+", help="a log, or a folder with logs")
        parser.add_argument(
            "-o", "--output", metavar="OUT.cdiag", required=True, help="the session file to write; with --dask a folder"
        )
        parser.add_argument("--strict", action="store_true", help="fail if anything can't be read")
        parser.add_argument(
            "-j",
            "--processes",
            metavar="N",
            type=int,
            help="processes that read (default: one per core, at most 8; one for small logs)",
        )
        parser.add_argument(
            "--dask",
            metavar="ADDRESS",
            help="read on the Dask cluster with this scheduler; OUT is then a folder that its workers see too"
            " (needs pip install compilediag[dask])",
        )
        parser.add_argument(
            "--group-ranks",
            action=argparse.BooleanOptionalAction,
            default=None,
            help="read one rank of each group of ranks that compiled the same (default: with 257 or more logs)",
        )
        parser.add_argument("--quiet", action="store_true", help="print no summary")

    def run(self, args: argparse.Namespace) -> int:
        from compilediag.logs.ingestion import read_logs, read_logs_with_dask
        from compilediag.logs.inputs import check_logs

        try:
            check_logs(args.paths)
            if args.dask:
                file, description = read_logs_with_dask(args.paths, args.output, args.strict, args.dask)
            else:
                file, description = read_logs(args.paths, args.output, args.strict, args.processes, args.group_ranks)
        except KeyboardInterrupt:
            print("compilediag: interrupted; run the same command again to continue", file=sys.stderr)
            return INTERRUPTED
        if not args.quiet:
            print(f"compilediag: {description}", file=sys.stderr)
            print_written(file)
        return 0


class CheckCommand(Command):
    """Fail if torch.compile compiled more than allowed, and show why.

    PATH is a script, which is run and recorded, a session file (.cdiag), a folder of them, or TORCH_TRACE logs. As with
    `compilediag run`, the options of check come before a script, and what follows the script is its own; a `--` before
    or behind it changes nothing. Behind a session or logs, options may follow. Examples:

      compilediag check --max-recompiles 0 train.py --steps 20
      compilediag check run.cdiag --max-compile-s 60
      compilediag check run.cdiag --max-after-warmup 0
      compilediag check --baseline .compilediag.toml --update train.py    accept the causes of today
      compilediag check --baseline .compilediag.toml train.py             fail on new ones, and on more of the same

    With --update, reasons in the file stay; it is written only if the script and the other limits pass.

    Exit code 1 if a limit is exceeded, or if nothing was compiled, so that the limits can't be checked; 2 if PATH is
    none of these, or if the warm-up never ended and --max-after-warmup is given. If the script fails, its exit code is
    returned.
    """

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        self._add_limits(parser)
        parser.add_argument("path", metavar="PATH", help="a script, a session, or logs")
        parser.add_argument("args", metavar="ARGS", nargs=argparse.REMAINDER, help="the script's own, or more logs")

    def _add_limits(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--max-recompiles", type=int, metavar="N", help="most recompiles allowed")
        parser.add_argument("--max-compile-s", type=float, metavar="S", help="most seconds of compile time allowed")
        parser.add_argument(
            "--max-cold-seconds",
            type=float,
            metavar="S",
            help="most seconds of compile time that a process may need until its warm-up ends, or until it ends",
        )
        parser.add_argument("--max-graph-breaks", type=int, metavar="N", help="most graph breaks allowed")
        parser.add_argument(
            "--max-after-warmup", type=int, metavar="N", help="most compiles allowed after the warm-up has ended"
        )
        parser.add_argument(
            "--min-cudagraph-coverage",
            type=make_number_type(float, lambda share: 0 <= share <= 1, "a share from 0 to 1"),
            metavar="SHARE",
            help="smallest share of a function's calls, from 0 to 1, that a CUDA graph replay has to answer",
        )
        parser.add_argument("--no-silent-eager", action="store_true", help="fail if a function falls back to eager")
        parser.add_argument(
            "--baseline",
            metavar="FILE",
            help="fail on causes that this file does not accept: .compilediag.toml, or an earlier session or logs",
        )
        parser.add_argument(
            "--update", action="store_true", help="write the text file of --baseline with the causes of this run"
        )
        parser.add_argument("--report", metavar="OUT.html", help="write the report, whether or not the check fails")
        parser.add_argument("--sarif", metavar="OUT.sarif", help="write the findings as SARIF, whether or not it fails")
        parser.add_argument(
            "--github",
            action=argparse.BooleanOptionalAction,
            default=os.environ.get("GITHUB_ACTIONS") == "true",
            help="annotate your lines and add to the step's summary (default: if GITHUB_ACTIONS is true)",
        )
        add_json_argument(parser, "check/1")

    def run(self, args: argparse.Namespace) -> int:
        from compilediag.comparison import read_baseline, read_earlier_baseline, write_baseline
        from compilediag.diagnosis.gate import Limits, accept, check, explain_no_warmup, find_fixed, format_fixed
        from compilediag.logs.inputs import InputKind, check_input
        from compilediag.session import ingest, load_any
        from compilediag.views.findings_document import describe_session_values
        from compilediag.views.json_documents import CheckDocument, list_broken_limits
        from compilediag.views.totals import compute_totals, describe_totals

        found = check_input(args.path, InputKind.SESSION, InputKind.LOGS, InputKind.SCRIPT)
        is_script = found.kind is InputKind.SCRIPT
        if not is_script:
            self._read_rest(args)
        if args.sarif:
            check_output(args.sarif, SARIF)
        if args.update and args.baseline is None:
            raise CompilediagError("--update needs the file to write: --baseline .compilediag.toml")
        read = read_earlier_baseline if args.update else read_baseline
        earlier = None if args.baseline is None else read(args.baseline)
        names = [field.name for field in fields(Limits) if field.name != "baseline"]
        limits = Limits(**{name: getattr(args, name) for name in names}, baseline=earlier)
        if limits == Limits():
            before = f" before {args.path}" if is_script else ""
            raise CompilediagError(f"no limit given; pass --max-recompiles, --no-silent-eager, --baseline, ...{before}")
        with tempfile.TemporaryDirectory(prefix="compilediag-") as folder:
            code = 0
            if is_script:
                session, code = _run_script(args, Path(folder, "run.cdiag"))
            else:
                session = ingest([args.path, *args.args]) if args.args else load_any(args.path)
            if args.report:
                print_written(session.report(args.report))
            if args.sarif:
                print_written(session.export(args.sarif, "sarif"))
            no_warmup = explain_no_warmup(session.data, limits)
            if no_warmup is not None and not code:
                raise CompilediagError(f"{args.path}: {no_warmup}")
            fixed = find_fixed(session.data, limits)
            if args.update:
                limits = replace(limits, baseline=accept(session.data, earlier))
            broken = check(session.data, limits)
            totals = describe_totals(compute_totals(session.data))
            head = f"compilediag check: {'FAILED' if broken else 'passed'}: {totals}"
            gone = format_fixed(fixed)
            if args.json:
                values = describe_session_values(session.data, args.path)
                rest = (code if is_script else None, values, list_broken_limits(broken), tuple(fixed))
                print_document(CheckDocument(not (broken or code), *rest), args.budget)
            else:
                with without_commands(args.github):
                    for text in filter(None, (head, *map(str, broken), gone)):
                        print_text(text)
            if args.github:
                report_to_github(session, head, broken, limits.baseline, gone, annotate=not args.json)
        if args.update and limits.baseline is not None:
            if code or broken:
                print(f"compilediag: {args.baseline} was not written, because the check failed", file=sys.stderr)
            else:
                print_written(write_baseline(args.baseline, limits.baseline))
                if missing := [cause.fingerprint for cause in limits.baseline.values() if not cause.reason]:
                    why = f"write down why it is accepted: the reason of {format_names(missing)}"
                    print(f"compilediag: {why}", file=sys.stderr)
        return code or int(bool(broken))

    def _read_rest(self, args: argparse.Namespace) -> None:
        """Read the options and the logs that follow a session or a log."""
        parser = SuggestingParser("compilediag check", allow_abbrev=False)
        self._add_limits(parser)
        parser.add_argument("args", metavar="PATH", nargs="*")
        parser.parse_args(args.args, args)


def _run_script(args: argparse.Namespace, file: Path) -> tuple[Session, int]:
    """The session of a run of the script, and its exit code."""
    from compilediag.session import load

    # Silent eager calls and replays are counted.
    calls = ["--calls"] if args.no_silent_eager else []
    replays = ["--replays"] if args.min_cudagraph_coverage is not None else []
    options = ["--quiet", *calls, *replays, "--save", os.fspath(file)]
    command = [sys.executable, "-m", "compilediag", "run", *options, args.path, *drop_dashes(args.args)]
    code = subprocess.run(command, stdout=sys.stderr.fileno() if args.json else None).returncode
    if not file.exists():
        raise CompilediagError(f"{args.path} was not run; see the messages above")
    return load(file), code if code >= 0 else 128 - code


ACTIONS: dict[str, Command] = {
    each.name: each for each in (ReportCommand(), PlanCommand(), FindingsCommand(), FixCommand())
}


class LastCommand(Command):
    """Show the session of the last run, its report, plan or findings, or fix its script.

    `compilediag run` keeps the sessions of the last 20 runs, unless it has --save; of a run that was killed, the first
    line says that it did not end by itself. Without ACTION, the summary is printed. ACTION is one of these commands,
    with its options:

      compilediag last plan --patch > fix.diff
      compilediag last report -o run.html         the default is report.html
      compilediag last fix --write                the script with the same arguments, in the same folder
      compilediag last -n 2 plan                  the run before the last one

    The sessions are in compilediag/sessions in $XDG_STATE_HOME, or ~/.local/state, and readable by you only. In Python,
    `cd.last()` opens one. COMPILEDIAG_HISTORY=off keeps none.
    """

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("-n", metavar="N", dest="number", type=int, default=1, help="the Nth last run (default: 1)")
        parser.add_argument("action", metavar="ACTION", nargs="?", help="report, plan, findings or fix")
        parser.add_argument("args", metavar="ARGS", nargs=argparse.REMAINDER, help="the options of the action")

    def run(self, args: argparse.Namespace) -> int:
        from compilediag.session import last

        if args.action is not None and args.action not in ACTIONS:
            raise CompilediagError(f"unknown action {args.action!r}; {suggest(args.action, ACTIONS)}")
        command = None if args.action is None else ACTIONS[args.action]
        # A wrong option, or --help, needs no session.
        options = None if command is None else _parse(command, args.args, ["SESSION"])
        session = last(args.number)
        created = time.localtime((session.meta.get("created_ns") or 0) / 1e9)
        ran = describe_command(session.meta) or "a program"
        killed = "" if session.meta.get("stopped_ns") else "; it did not end by itself"
        line = f"compilediag: {ran}, recorded {time.strftime('%Y-%m-%d %H:%M', created)}{killed}"
        if command is None or options is None:
            from compilediag.views.summary import LAST, format_summary, suggest_commands

            print_text(line)
            print_text(format_summary(session.data, suggest_commands(LAST)), end="")
            return 0
        print_text(line, file=sys.stderr)
        if command.name == "fix":
            program = _find_program(session)
            words = ["-m", program.module] if program.module else [program.script or ""]
            options = _parse(command, args.args, [*words, "--", *program.arguments])
            options.patch = options.patch and os.path.abspath(options.patch)
            os.chdir(program.folder)
        else:
            options.session = str(session.path)
        if command.name == "report":
            options.report = options.report or "report.html"
        return command.run(options)


def _parse(command: Command, options: list[str], rest: list[str]) -> argparse.Namespace:
    """The arguments of an action: its options, and what it works on."""
    name = f"compilediag last {command.name}"
    usage = f"{name} [options of compilediag {command.name}]"
    parser = _OptionsParser(name, usage, f"As `compilediag {command.name}`, for the last run.", allow_abbrev=False)
    command.add_arguments(parser)
    return parser.parse_args([*options, *rest])


class _OptionsParser(SuggestingParser):
    """Its help has options alone: what follows them is not typed."""

    def add_argument(self, *names: str, **options: Any) -> argparse.Action:
        is_option = names[0].startswith("-")
        return super().add_argument(*names, **(options if is_option else {**options, "help": argparse.SUPPRESS}))


def _find_program(session: Session) -> RunningProgram:
    """What `last fix` runs again. CompilediagError if that is not known, or not possible."""
    program = read_program(session.meta)
    if program is None:
        raise CompilediagError("the session does not name its script; use `compilediag fix SCRIPT`")
    if session.compiles["rank"].notna().any():
        name = os.path.basename(program.script or "train.py")
        raise CompilediagError(f"it was a rank of a job; use `compilediag fix torchrun --nproc-per-node 2 {name}`")
    if not os.path.isdir(program.folder):
        raise CompilediagError(f"{program.folder}, where it ran, does not exist any more; use `compilediag fix SCRIPT`")
    return program


# What `check` writes on GitHub Actions: annotations to the standard output, and the summary of a step


@contextlib.contextmanager
def without_commands(is_on: bool) -> Iterator[None]:
    """GitHub runs none of the commands that the block prints: it can print texts of the program."""
    token = secrets.token_hex(16)
    if is_on:
        print(f"::stop-commands::{token}")
    try:
        yield
    finally:
        if is_on:
            print(f"::{token}::")


def report_to_github(
    session: Session, head: str, broken: Sequence[Broken], baseline: Baseline | None, fixed: str | None, annotate: bool
) -> None:
    """Print the annotations if asked to, and add to the summary of the step, if there is a file for it."""
    from compilediag.system.files import open_private
    from compilediag.views.export import make_markdown
    from compilediag.views.review import find_repository, write_annotations, write_step_summary

    for line in write_annotations(session.data, broken, baseline, find_repository()) if annotate else ():
        print_text(line)
    file = os.environ.get("GITHUB_STEP_SUMMARY")
    if not file:
        return
    summary = write_step_summary(head, broken, fixed, make_markdown(session.data, redact=False))
    try:
        with open(file, "a", encoding="utf-8", errors="replace", opener=open_private) as opened:
            opened.write(summary)
    except OSError as error:
        print(f"compilediag: can't write the summary of the step: {error.strerror}: {file}", file=sys.stderr)
