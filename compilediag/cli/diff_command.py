"""`compilediag diff BEFORE AFTER`: what is new, gone or changed."""

from __future__ import annotations

import argparse
import sys

from compilediag.system.files import HTML_PAGE, check_output

from .output import print_text


class DiffCommand:
    """Compare two sessions: what is new, gone or changed.

    Each is a session file (.cdiag), a folder of them, a TORCH_TRACE log or a folder of logs.
    """

    name = "diff"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("before", metavar="BEFORE", help="a session or logs")
        parser.add_argument("after", metavar="AFTER", help="the session or logs to compare with it")
        parser.add_argument("--report", metavar="OUT.html", help="write the differences as one offline HTML file")

    def run(self, args: argparse.Namespace) -> int:
        if args.report:
            check_output(args.report, HTML_PAGE)

        import compilediag as cd

        found = cd.diff(args.before, args.after)
        print_text(found.summary(), end="")
        if args.report:
            print(f"compilediag: wrote {found.report(args.report)}", file=sys.stderr)
        return 0
