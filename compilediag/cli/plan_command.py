"""`compilediag plan SESSION`: the smallest set of changes that saves the most compile seconds."""

from __future__ import annotations

import argparse
import json
import sys
from typing import TYPE_CHECKING

from .output import print_text

if TYPE_CHECKING:
    from compilediag.diagnosis.plan import Plan


class PlanCommand:
    """Print the changes that save the most compile seconds, and what each of them saves.

    Examples:

      compilediag plan run.cdiag                     the plan as text
      compilediag plan run.cdiag --code              only the block of code to paste
      compilediag plan run.cdiag --patch > fix.diff  the same as a diff of your files
      compilediag plan run.cdiag --warmup warmup.py  a script that fills torch's caches for the next process

    Exit code 1 if --patch is given and your files were changed since the recording, or the plan has no code.
    """

    name = "plan"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("session", metavar="SESSION", help="a session file (.cdiag), a folder of them, or logs")
        form = parser.add_mutually_exclusive_group()
        form.add_argument("--code", action="store_true", help="print only the block of code to paste")
        form.add_argument("--patch", action="store_true", help="print a unified diff of your files")
        form.add_argument("--json", action="store_true", help="print the plan as JSON")
        form.add_argument(
            "--warmup", metavar="OUT.py", help="write a script that compiles the same again and saves torch's caches"
        )

    def run(self, args: argparse.Namespace) -> int:
        from compilediag.session import load_any

        session = load_any(args.session)
        if args.warmup:
            print(f"compilediag: wrote {session.warmup(args.warmup)}", file=sys.stderr)
            return 0
        plan = session.plan()
        if args.patch:
            return _print_patch(plan)
        if args.json:
            print(json.dumps(plan.to_dict(), indent=2))
        else:
            print_text(plan.code() if args.code else str(plan))
        return 0


def _print_patch(plan: Plan) -> int:
    patch = plan.patch()
    if patch is None:
        print("compilediag: no patch: your files were changed since, or the plan has no code", file=sys.stderr)
        return 1
    print(patch, end="")
    return 0
