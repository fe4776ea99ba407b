"""Columns that the rows of several tables have, as the sources hand them to the events."""

from __future__ import annotations

from typing import TypedDict


class AttemptColumns(TypedDict):
    """The compile attempt that a row belongs to; None outside of one."""

    compile_id: str | None
    compile_key: str | None


class FunctionColumns(TypedDict):
    """The function that is compiled; None where it is not known."""

    function: str | None
    file: str | None
    line: int | None


class OwnerColumns(AttemptColumns, FunctionColumns):
    """The compile attempt that a row belongs to, and its function."""


class ErrorColumns(TypedDict, total=False):
    """What went wrong; no columns if nothing did."""

    reason: str | None
    exception_type: str | None
