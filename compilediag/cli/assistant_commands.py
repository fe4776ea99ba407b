"""The commands for coding assistants: `compilediag mcp`, and `compilediag skill`."""

from __future__ import annotations

import argparse
import importlib.util
from pathlib import Path

from compilediag.errors import CompilediagError
from compilediag.system.files import SKILL, check_output, write_file

from .command import Command, print_written

TEXT = Path(__file__).parents[1] / "skill.md"


class McpCommand(Command):
    """Answer a coding assistant's questions about sessions, over the Model Context Protocol.

    The assistant starts this command itself and talks to it over standard input and output. It needs the official SDK:
    pip install 'compilediag[mcp]'. SESSION is what the tools answer for if they are not given another one: a session
    file (.cdiag), a folder of ranks, or logs; without it, the last run. No tool writes a file or runs a program, unless
    --allow-run is given: then `fix` runs the scripts that the assistant names.

      compilediag mcp run.cdiag
      compilediag mcp run.cdiag --redact        source code, values and paths stay here
    """

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("session", metavar="SESSION", nargs="?", help="a session, a folder of them, or logs")
        parser.add_argument("--redact", action="store_true", help="leave out code, values and paths")
        parser.add_argument("--allow-run", action="store_true", help="let the assistant run scripts with `fix`")

    def run(self, args: argparse.Namespace) -> int:
        if importlib.util.find_spec("mcp") is None:
            raise CompilediagError("this needs the SDK of the protocol: pip install 'compilediag[mcp]'")
        if args.redact and args.allow_run:
            raise CompilediagError("--allow-run shows what the script prints; leave out --redact, or --allow-run")
        from .mcp_server import Sessions, make_server

        sessions = Sessions(args.session, args.redact)
        if args.session is not None:
            sessions.open()  # A wrong file is reported before a client waits.
        make_server(sessions, args.allow_run).run("stdio")
        return 0


class SkillCommand(Command):
    """Print instructions for coding assistants, or install them where an assistant reads them.

    They say how to run a program, read its findings, apply a patch, prove it, keep it in CI, and when to stop. PATH is
    the file to write, or the folder of a skill, in which it is SKILL.md.

      compilediag skill --install .claude/skills/compilediag
      compilediag skill >> AGENTS.md
    """

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
