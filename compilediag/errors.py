"""Errors that the user can fix. Each message is one line: what happened, and what to do.

`compilediag.cli.main` prints one as `compilediag: <line>` and exits with its `exit_code`. Everywhere else they are
ordinary exceptions.
"""

from __future__ import annotations


class CompilediagError(Exception):
    """A request cannot be fulfilled; the message is one line that says why and what to do."""

    exit_code = 2


class NotASession(CompilediagError):
    """A file is not a compilediag session, or it is damaged."""


class NewerSchema(CompilediagError):
    """A session was written by a newer compilediag than this one."""
