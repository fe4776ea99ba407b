"""Records programs under one watch, one after the other: `python -m tests.advice.recording OUT BACKEND:FILE...`."""

import contextlib
import io
import sys

import torch

import compilediag

from .worker import CountingBackend, execute, fresh_torch, make_main


def main() -> None:
    out, *programs = sys.argv[1:]
    # torch measures each guard tree once, and empties the processor's caches for that.
    torch._dynamo.guards.profile_guard_manager = lambda *args: 0.0
    with compilediag.watch(out):
        for backend, _, path in (program.partition(":") for program in programs):
            with fresh_torch(CountingBackend(backend)), contextlib.redirect_stdout(io.StringIO()):
                execute(path, make_main(path))


if __name__ == "__main__":
    main()
