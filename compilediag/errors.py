"""Errors that the user can fix. Each message is one line: what happened, and what to do.

A message can have the name of a file or a text from one, so control characters in it become escapes.
`compilediag.cli.main` prints one as `compilediag: <line>` and exits with its `exit_code`. Everywhere else they are
ordinary exceptions.
"""

from __future__ import annotations

from .formatting import escape_controls

#: The exit code of a command that was interrupted, as a shell reports it.
INTERRUPTED = 130


class CompilediagError(Exception):
    """A request cannot be fulfilled; the message is one line that says why and what to do."""

    exit_code = 2

    def __init__(self, message: str = ""):
        super().__init__(escape_controls(message))


class CompiledAfterWarmup(RuntimeError):
    """torch was about to compile after `session.end_warmup("raise")`; the message has the function, the guard and its
    values. It is raised in the caller, before the compile: the function did not run, and nothing was compiled.
    """


class NotASession(CompilediagError):
    """A file is not a compilediag session, it is damaged, or an older compilediag wrote it."""


class NewerSchema(CompilediagError):
    """A session was written by a newer compilediag than this one."""


class WrongInput(NotASession):
    """A path is not what a command or a function reads; the message says what it is and what to use instead."""
