"""What `compilediag check` writes on GitHub Actions: annotations to the standard output, and the summary of a step."""

from __future__ import annotations

import contextlib
import os
import secrets
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from .output import print_text

if TYPE_CHECKING:
    from compilediag.diagnosis.baseline import Baseline
    from compilediag.diagnosis.gate import Broken
    from compilediag.session import Session


def is_github() -> bool:
    """True in a step of a workflow."""
    return os.environ.get("GITHUB_ACTIONS") == "true"


@contextlib.contextmanager
def without_commands(is_on: bool) -> Iterator[None]:
    """GitHub runs none of the commands that the block prints: it can print texts of the program."""
    token = secrets.token_hex(16)
    if is_on:
        print(f"::stop-commands::{token}")
    try:
        yield
    finally:
        if is_on:
            print(f"::{token}::")


def report_to_github(
    session: Session, head: str, broken: Sequence[Broken], baseline: Baseline | None, fixed: str | None, annotate: bool
) -> None:
    """Print the annotations if asked to, and add to the summary of the step, if there is a file for it."""
    from compilediag.system.files import open_private
    from compilediag.views.export import make_markdown
    from compilediag.views.review import find_repository, write_annotations, write_step_summary

    for line in write_annotations(session.data, broken, baseline, find_repository()) if annotate else ():
        print_text(line)
    file = os.environ.get("GITHUB_STEP_SUMMARY")
    if not file:
        return
    summary = write_step_summary(head, broken, fixed, make_markdown(session.data, redact=False))
    try:
        with open(file, "a", encoding="utf-8", errors="replace", opener=open_private) as opened:
            opened.write(summary)
    except OSError as error:
        print(f"compilediag: can't write the summary of the step: {error.strerror}: {file}", file=sys.stderr)
