"""`compilediag export SESSION -o PATH`: for Perfetto, or tables for other tools."""

from __future__ import annotations

import argparse

FORMATS = ("perfetto", "parquet", "csv")


class Export:
    """Write a session, or logs of TORCH_TRACE, for other tools.

    perfetto: one JSON file that ui.perfetto.dev opens. parquet and csv: a folder with a file a table.
    """

    name = "export"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("session", metavar="SESSION", help="the session file (.cdiag), or logs")
        parser.add_argument("-o", "--output", metavar="PATH", required=True, help="the file or folder to write")
        parser.add_argument("--format", choices=FORMATS, default="perfetto", help="what to write (%(default)s)")

    def run(self, args: argparse.Namespace) -> int:
        from compilediag.logs import opened

        opened(args.session).export(args.output, args.format)
        return 0
