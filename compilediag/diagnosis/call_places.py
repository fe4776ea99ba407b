"""Where the user's own code calls what a finding is about, as fields of the finding."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypedDict

from ..events import Compile, GraphBreak, RefusedCall, Rows
from .causes.call_sites import CallSite, CallSites
from .evidence import find_first


class CallFields(TypedDict):
    """The fields of a finding that name the user's line."""

    call_file: str | None
    call_line: int | None


def make_call_fields(site: CallSite | None) -> CallFields:
    """A call site as fields of a finding."""
    return {"call_file": site.file if site else None, "call_line": site.line if site else None}


class CallPlaces:
    """Finds the user's line of compiles and graph breaks; the stacks of the session are read at the first one."""

    def __init__(self, data: Rows):
        self._data = data
        self._sites: CallSites | None = None

    def find(self, rows: Iterable[Compile | GraphBreak | RefusedCall]) -> CallFields:
        """The line of the first of these that has one."""
        sites = self._sites = self._sites or CallSites(self._data)
        return make_call_fields(find_first(sites.find(row.compile_key) for row in rows))
