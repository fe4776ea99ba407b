"""`compilediag ranks SESSION`: where the ranks of a job first went different ways, and who is slow."""

from __future__ import annotations

import argparse


class RanksCommand:
    """Say where the ranks of a distributed job first went different ways, and which are slow.

    SESSION is a session file (.cdiag), a folder of ranks' sessions or of a cluster's partitions, or logs of
    TORCH_TRACE.
    """

    name = "ranks"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("session", metavar="SESSION", help="a session, a folder of them, or logs")

    def run(self, args: argparse.Namespace) -> int:
        from compilediag.logs import opened

        print(opened(args.session).ranks().summary(), end="")
        return 0
