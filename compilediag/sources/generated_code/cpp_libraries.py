"""C++ libraries in the writer's thread: rows that are complete only when several threads have reported.

The thread that compiles knows for which compile a library is, and the name of its kernel; the worker's thread knows
whether the file existed and how long the build took.
"""

from __future__ import annotations

import dataclasses
import os
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

from ... import clock
from ...events import CacheLookup, KernelCompile
from ..hooks.columns import AttemptColumns, OwnerColumns
from ..hooks.sink import Made

#: Libraries that are remembered until the other thread reports.
MAX_REMEMBERED = 4_096
WRAPPER = "cpp_wrapper"
Value = TypeVar("Value")


@dataclass(slots=True)
class LibraryBuild:
    """What a worker did for a C++ library; `duration_s` is None if its file existed."""

    time_ns: int
    where: str
    duration_s: float | None
    fail_reason: str | None


class LibraryLookUps:
    """Look-ups of C++ libraries, one row each.

    A worker looks for the file in a thread of its own, and once more when the library is loaded. Only the thread that
    asks knows the compile, only the first look-up shows whether the file existed.
    """

    def __init__(self) -> None:
        #: key -> the compile, or the row that waits for it; None once the row was emitted.
        self._known: OrderedDict[str, OwnerColumns | CacheLookup | None] = OrderedDict()

    def ask(self, key: str, owner: OwnerColumns) -> Made:
        """A compile needs a library."""
        found = self._known.get(key)
        if isinstance(found, CacheLookup):
            return self._complete(found, owner)
        _put(self._known, key, owner)
        return ()

    def answer(self, row: CacheLookup) -> Made:
        """A worker has looked for the library of a row."""
        key = row.key or ""
        if key not in self._known:
            _put(self._known, key, row)
            return ()
        owner = self._known[key]
        return self._complete(row, owner) if isinstance(owner, Mapping) else ()

    def _complete(self, row: CacheLookup, owner: OwnerColumns) -> Made:
        _put(self._known, row.key or "", None)
        return (dataclasses.replace(row, **owner),)


class LibraryBuilds:
    """Builds of C++ libraries, until the names of their kernels are known."""

    def __init__(self) -> None:
        self._done: OrderedDict[str, LibraryBuild] = OrderedDict()
        #: key -> name and compile of a library that no generated module waits for.
        self._claimed: OrderedDict[str, tuple[str, AttemptColumns]] = OrderedDict()

    def finish(self, key: str, build: LibraryBuild) -> Made:
        """A worker is done with a library: once more when it is loaded, which adds nothing."""
        known = self._done.get(key)
        if known is None or known.duration_s is None:
            _put(self._done, key, build)
        if key not in self._claimed:
            return ()
        name, ids = self._claimed.pop(key)
        return self.claim(name, key, ids)

    def claim(self, name: str, key: str, ids: AttemptColumns) -> Made:
        """The name and compile of a library's kernel are known."""
        build = self._done.pop(key, None)
        if build is not None:
            return (make_kernel_row(name, build, ids),)
        if name == WRAPPER:
            _put(self._claimed, key, (name, ids))
            return ()
        return (make_kernel_row(name, LibraryBuild(clock.now_ns(), "process", None, None), ids),)

    def fail(self, key: str | None, time_ns: int, reason: str, ids: AttemptColumns) -> Made:
        """The library of a kernel could not be built in the compiling thread."""
        build = self._done.pop(key or "", None) or LibraryBuild(time_ns, "process", None, reason)
        return (make_kernel_row(key, build, ids),)


def make_kernel_row(name: str | None, build: LibraryBuild, ids: AttemptColumns) -> KernelCompile:
    outcome = "failed" if build.fail_reason else "cached" if build.duration_s is None else "compiled"
    return KernelCompile(
        time_ns=build.time_ns,
        duration_s=build.duration_s,
        name=name,
        language="cpp",
        where=build.where,
        worker_pid=os.getpid(),
        outcome=outcome,
        fail_reason=build.fail_reason,
        **ids,
    )


def _put(where: OrderedDict[str, Value], key: str, value: Value) -> None:
    where[key] = value
    where.move_to_end(key)
    if len(where) > MAX_REMEMBERED:
        where.popitem(last=False)
