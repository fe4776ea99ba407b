"""`compilediag ingest PATHS... -o run.cdiag`: logs that TORCH_TRACE wrote, as a session."""

from __future__ import annotations

import argparse
import sys

from compilediag.errors import INTERRUPTED

from .output import print_written


class IngestCommand:
    """Read TORCH_TRACE logs into a session file.

    Reads logs of torch 2.4 and later, plain or compressed with gzip or zstd. If the command is interrupted, run it
    again and it continues. Exit code 1 if --strict is given and something could not be read.
    """

    name = "ingest"

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
