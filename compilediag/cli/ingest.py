"""`compilediag ingest PATHS... -o run.cdiag`: logs that TORCH_TRACE wrote, as a session."""

from __future__ import annotations

import argparse
import sys


class Ingest:
    """Read TORCH_TRACE logs into a session file.

    Logs of torch 2.4 and later, plain or packed with gzip or zstd. If it is interrupted, the same command goes on from
    there. Exit code 1 if something could not be read and --strict was given.
    """

    name = "ingest"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("paths", metavar="PATH", nargs="+", help="a log, or a directory with logs")
        parser.add_argument(
            "-o", "--output", metavar="OUT.cdiag", required=True, help="the session file to write; with --dask a folder"
        )
        parser.add_argument("--strict", action="store_true", help="fail on anything that can't be read")
        parser.add_argument(
            "-j", "--processes", metavar="N", type=int, help="processes that read; else one a core, at most 8"
        )
        parser.add_argument(
            "--dask", metavar="ADDRESS", help="let this Dask cluster read, into the folder OUT, which load() opens"
        )
        parser.add_argument("--quiet", action="store_true", help="no summary")

    def run(self, args: argparse.Namespace) -> int:
        from compilediag.logs import read_logs, read_on_dask

        try:
            if args.dask:
                file, told = read_on_dask(args.paths, args.output, args.strict, args.dask)
            else:
                file, told = read_logs(args.paths, args.output, args.strict, args.processes)
        except KeyboardInterrupt:
            print("compilediag: interrupted; the same command goes on from here", file=sys.stderr)
            return 130
        if not args.quiet:
            print(f"compilediag: {told}", file=sys.stderr)
            print(f"compilediag: wrote {file}", file=sys.stderr)
        return 0
