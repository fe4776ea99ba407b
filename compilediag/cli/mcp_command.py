"""`compilediag mcp`: a session for coding assistants, over the Model Context Protocol."""

from __future__ import annotations

import argparse
import importlib.util

from compilediag.errors import CompilediagError


class McpCommand:
    """Answer a coding assistant's questions about sessions, over the Model Context Protocol.

    The assistant starts this command itself and talks to it over standard input and output. It needs the official SDK:
    pip install 'compilediag[mcp]'. SESSION is what the tools answer for if they are not given another one: a session
    file (.cdiag), a folder of ranks, or logs; without it, the last run. No tool writes a file or runs a program, unless
    --allow-run is given: then `fix` runs the scripts that the assistant names.

      compilediag mcp run.cdiag
      compilediag mcp run.cdiag --redact        source code, values and paths stay here
    """

    name = "mcp"

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
