"""`compilediag report SESSION -o OUT.html`: a saved session as one offline HTML file."""

from __future__ import annotations

import argparse
import sys

from compilediag.system.files import HTML_PAGE, check_output


class ReportCommand:
    """Write a saved session as one offline HTML file.

    The file contains everything it shows and loads nothing from the network. Example:

      compilediag report run.cdiag -o run.html
    """

    name = "report"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("session", metavar="SESSION", help="a session file (.cdiag), or a folder of them")
        parser.add_argument("-o", "--output", metavar="OUT.html", required=True, help="the file to write")
        parser.add_argument("--redact", action="store_true", help="leave out code, values and paths")

    def run(self, args: argparse.Namespace) -> int:
        check_output(args.output, HTML_PAGE)

        import compilediag as cd

        written = cd.load(args.session).report(args.output, redact=args.redact)
        print(f"compilediag: wrote {written}", file=sys.stderr)
        return 0
