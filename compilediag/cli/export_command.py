"""`compilediag export SESSION -o PATH`: a timeline for Perfetto, or tables for other tools."""

from __future__ import annotations

import argparse

FORMATS = ("perfetto", "parquet", "csv")


class ExportCommand:
    """Write a session as a timeline for Perfetto, or as Parquet or CSV tables.

    perfetto: one JSON file, a timeline of compiles and phases; open it at https://ui.perfetto.dev.
    parquet:  a folder with one file per table, for pandas, polars, DuckDB, Spark; needs pyarrow.
    csv:      a folder with one file per table, for spreadsheets.

    docs/tables.md describes the tables and their columns. Examples:

      compilediag export run.cdiag -o run.json
      compilediag export run.cdiag -o tables --format parquet
    """

    name = "export"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("session", metavar="SESSION", help="a session file (.cdiag), a folder of them, or logs")
        parser.add_argument("-o", "--output", metavar="PATH", required=True, help="the file or folder to write")
        parser.add_argument("--format", choices=FORMATS, default="perfetto", help="format (default: %(default)s)")

    def run(self, args: argparse.Namespace) -> int:
        from compilediag.session import load_any

        load_any(args.session).export(args.output, args.format)
        return 0
