"""`compilediag ranks SESSION`: where the ranks of a job first diverge, and which are slow."""

from __future__ import annotations

import argparse

from .output import print_text


class RanksCommand:
    """Show where the ranks of a distributed job first diverge, and which are slow.

    SESSION is a session file (.cdiag), a folder of the ranks' session files, a folder that `ingest --dask` wrote, or
    TORCH_TRACE logs.
    """

    name = "ranks"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("session", metavar="SESSION", help="a session, a folder of them, or logs")

    def run(self, args: argparse.Namespace) -> int:
        from compilediag.session import load_any

        print_text(load_any(args.session).ranks().summary(), end="")
        return 0
