"""`compilediag skill`: instructions for coding assistants."""

from __future__ import annotations

import argparse
from pathlib import Path

from compilediag.system.files import SKILL, check_output, write_file

from .output import print_written

TEXT = Path(__file__).parents[1] / "skill.md"


class SkillCommand:
    """Print instructions for coding assistants, or install them where an assistant reads them.

    They say how to run a program, read its findings, apply a patch, prove it, keep it in CI, and when to stop. PATH is
    the file to write, or the folder of a skill, in which it is SKILL.md.

      compilediag skill --install .claude/skills/compilediag
      compilediag skill >> AGENTS.md
    """

    name = "skill"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--install", metavar="PATH", help="write them to this file, or as SKILL.md to this folder")

    def run(self, args: argparse.Namespace) -> int:
        text = TEXT.read_text(encoding="utf-8")
        if args.install is None:
            print(text, end="")
            return 0
        file = Path(args.install)
        if file.suffix != ".md":
            file.mkdir(mode=0o700, parents=True, exist_ok=True)
            file = file / "SKILL.md"
        check_output(file, SKILL)
        write_file(file, text)
        return print_written(file)
