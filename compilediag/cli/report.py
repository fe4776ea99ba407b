"""`compilediag report SESSION -o OUT.html`: a saved session as one offline HTML file."""

from __future__ import annotations

import argparse

from compilediag.output_paths import check_output


class Report:
    """Write a saved session as one offline HTML file."""

    name = "report"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("session", metavar="SESSION", help="the session file (.cdiag)")
        parser.add_argument("-o", "--output", metavar="OUT.html", required=True, help="the file to write")
        parser.add_argument("--redact", action="store_true", help="keep code, values and paths out of it")

    def run(self, args: argparse.Namespace) -> int:
        check_output(args.output)

        from compilediag.session import load

        load(args.session).report(args.output, redact=args.redact)
        return 0
