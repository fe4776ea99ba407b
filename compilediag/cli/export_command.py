"""`compilediag export SESSION -o PATH`: a timeline for Perfetto, tables for other tools, or Markdown for an issue."""

from __future__ import annotations

import argparse
import sys

from compilediag.errors import CompilediagError

from .output import print_text

FORMATS = ("perfetto", "parquet", "csv", "markdown")


class ExportCommand:
    """Write a session as a timeline for Perfetto, as Parquet or CSV tables, or as Markdown for an issue.

    perfetto: one JSON file, a timeline of compiles and phases; open it at https://ui.perfetto.dev.
    parquet:  a folder with one file per table, for pandas, polars, DuckDB, Spark; needs pyarrow.
    csv:      a folder with one file per table, for spreadsheets.
    markdown: environment, plan and recompiles for an issue; it is printed if there is no -o. Code, values and paths
              are left out, unless --no-redact is given.

    docs/tables.md describes the tables and their columns. Examples:

      compilediag export run.cdiag -o run.json
      compilediag export run.cdiag -o tables --format parquet
      compilediag export run.cdiag --format markdown | gh issue create --title "Slow compile" --body-file -
    """

    name = "export"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("session", metavar="SESSION", help="a session file (.cdiag), a folder of them, or logs")
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
            print(f"compilediag: wrote {session.export(args.output, args.format, redact)}", file=sys.stderr)
            return 0
        from compilediag.views.export import make_markdown

        print_text(make_markdown(session.data, bool(redact)), end="")
        return 0
