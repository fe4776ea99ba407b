"""What the values of guards are called in the user's own code, at each line that calls into the compiled function."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ...events import Compile, Recompile, Rows
from ...formatting import format_expression
from ..evidence import Place, get_place
from .call_sites import CallSite, CallSites, NamedValue

#: A size, and the function that it was guarded in.
SizeAt = tuple[Place, str]
#: Names that are looked up of one value: it has the same one at almost all of its calls.
_MAX_ROWS = 64


@dataclass(frozen=True)
class NamedSite:
    """A line of the user's own code that calls into a compiled function, and what guarded values are called there.

    `sources` are the values that the compiled code has there. `names` maps each to its value without a tensor's
    property; only values that can be evaluated twice are in it.
    """

    site: CallSite
    names: Mapping[str, str] = field(default_factory=dict)
    sources: frozenset[str] = frozenset()


@dataclass(frozen=True)
class UserNames:
    """Where a cause is in the user's own code.

    `site` is the line that calls into compiled code and `expression` the value there; without one, `reason` says why.
    `sites` are all lines at which it recompiled, or at which the entries that it did not fit were compiled; the first
    of the program first. `is_whole`: all values that changed with it are values of these lines, none is computed.
    """

    site: CallSite | None = None
    expression: str | None = None
    reason: str | None = None
    sites: tuple[NamedSite, ...] = ()
    is_whole: bool = False


def merge_names(names: Sequence[UserNames]) -> UserNames:
    """The names of causes that are one, at all of their lines."""
    sites: dict[tuple[str, int], NamedSite] = {}
    for one in (site for found in names for site in found.sites):
        known = sites.setdefault((one.site.file, one.site.line), one)
        sites[one.site.file, one.site.line] = replace(
            known, names={**one.names, **known.names}, sources=known.sources | one.sources
        )
    return replace(names[0], sites=tuple(sites.values()), is_whole=all(one.is_whole for one in names))


class NameIndex:
    """Finds the names of guarded values. The same source in the same stack has the same name."""

    def __init__(self, data: Rows):
        self._sites = CallSites(data)
        # A backward that is compiled later is another row of the same compile, without a stack.
        self._stacks = {row.compile_key: row.stack for row in data.rows(Compile) if row.stack is not None}
        self._named: dict[tuple[str | None, str], NamedValue] = {}
        self._found: dict[str | None, CallSite | None] = {}

    def find_key(self, row: Recompile) -> str | None:
        """A text that is equal for guards on one expression at one line of the user's code; None without a name."""
        site, source = self._find_site(row.compile_key), row.guard_source
        if site is None or not source:
            return None
        expression = self._name(row.compile_key, source).expression
        return None if expression is None else f"{site.file}:{site.line}:{expression}"

    def find_position(self, row: Recompile) -> int | None:
        """Where the user's call has the value: the offset in its text; None if it is not there."""
        site = self._find_site(row.compile_key)
        value = self._name(row.compile_key, row.guard_source or "") if site is not None else None
        if site is None or not site.call or value is None or value.base is None:
            return None
        found = re.search(rf"(?<![\w.]){re.escape(value.base)}(?!\w)", site.call)
        return found.start() if found else None

    def find(self, rows: Iterable[Recompile], members: Sequence[Recompile], others: Iterable[SizeAt]) -> UserNames:
        """The names of a cause by its recompiles. `members` are recompiles by all values that are the same change, and
        `others` the sizes of guards that failed beside it, each with its function.
        """
        found, reason, first = [*rows][:_MAX_ROWS], None, None
        for row in found:
            site = self._find_site(row.compile_key)
            value = self._name(row.compile_key, row.guard_source or "") if site is not None else None
            if site is not None and value is not None and value.expression is not None:
                is_whole = all(self._name(one.compile_key, one.guard_source or "").base for one in members)
                expression = self._choose_expression(row, value)
                return UserNames(site, expression, None, self._list_sites(found, {*others}), is_whole)
            first, reason = first or site, reason or (value.reason if value is not None else None)
        return UserNames(first, None, reason)

    def _choose_expression(self, row: Recompile, value: NamedValue) -> str | None:
        """The value at the call, or in the compiled function: if that is the user's own, its parameter reads better
        than a call such as `torch.randn(size, 16)`.
        """
        is_own = self._sites.is_own(row.file, row.function)
        return format_expression(row.guard_source or "") if is_own and "(" in (value.base or "") else value.expression

    def _list_sites(self, rows: list[Recompile], others: set[SizeAt]) -> tuple[NamedSite, ...]:
        """The lines with the names of the values there. A value is one of the function that it was guarded in."""
        sources = others | {(get_place(row), row.guard_source or "") for row in rows}
        found: dict[tuple[str, int], NamedSite] = {}
        for place, key in ((get_place(row), key) for row in rows for key in (row.closest_compile_key, row.compile_key)):
            site = self._find_site(key)
            if site is not None:
                known = found.get((site.file, site.line)) or NamedSite(site)
                own = frozenset(source for at, source in sources if at == place and source) - known.sources
                names = {**known.names, **self._list_names(key, own)}
                found[site.file, site.line] = replace(known, names=names, sources=known.sources | own)
        return tuple(found.values())

    def _list_names(self, key: str | None, sources: Iterable[str]) -> dict[str, str]:
        named = ((source, self._name(key, source)) for source in sources)
        return {source: value.base for source, value in named if value.base is not None and value.is_duplicable}

    def _find_site(self, key: str | None) -> CallSite | None:
        stack = self._stacks.get(key)
        if stack is None:
            return None
        if stack not in self._found:
            self._found[stack] = self._sites.find(key)
        return self._found[stack]

    def _name(self, key: str | None, source: str) -> NamedValue:
        place = self._stacks.get(key), source
        if place not in self._named:
            self._named[place] = self._sites.name(key, source)
        return self._named[place]
