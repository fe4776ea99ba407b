"""Errors that are the user's to mend: one line each, saying what to do.

The command line shows one as `compilediag: <line>` and ends with its `exit_code`; that is done in one place,
`compilediag.cli.main`. Everywhere else they are ordinary exceptions.
"""

from __future__ import annotations


class CompilediagError(Exception):
    """Something that was asked for cannot be done; the message is one line that says what to do."""

    exit_code = 2


class NotASession(CompilediagError):
    """A file that was given as a session is not one."""


class NewerSchema(CompilediagError):
    """A session was written by a newer compilediag than this one."""
