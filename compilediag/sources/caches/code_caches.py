"""Caches of generated code: the Python modules, C++ libraries, CUDA objects and triton kernels of this process.

The outer caches (FxGraphCache and those above it) give a module's source; whether it has to be imported, built or
compiled is decided here. All of it happens while something is compiled or loaded from a cache.
"""

from __future__ import annotations

import dataclasses
import os
import time
from collections import OrderedDict, defaultdict
from threading import get_ident
from typing import Any

from ...events import CacheLookup
from ...recording import Made
from .. import _compat
from .._compat import code_caches as places
from ..dynamo.current_compile import whose
from ..hooks import shield
from ..hooks.patching import Args, Kwargs, Patch, Raised
from ..hooks.source import Source, made

#: C++ libraries whose build is awaited or was told.
REMEMBERED = 1_024
#: Characters of a compiler's complaint that are kept.
MAX_REASON = 2_000


class CodeCaches(Source):
    name = "code_caches"

    def __init__(self, *args: Any):
        super().__init__(*args)
        #: thread -> for each call that runs, when it began and what was in the cache.
        self._begun: defaultdict[int, list[tuple[int, Any]]] = defaultdict(list)
        self._found: dict[int, bool] = {}
        self._libraries = Libraries()

    @classmethod
    def probe(cls) -> None:
        places.py_code_cache()
        places.cpp_code_cache()
        places.cpp_worker_module()
        places.cutlass_code_cache()
        places.async_compile()
        places.triton_kernels()

    def patches(self) -> list[Patch]:
        worker, triton = places.cpp_worker_module(), places.async_compile()
        return [
            Patch(
                places.py_code_cache(), "load_by_key_path", self._module_loaded, self.guarded, before=self._module_loads
            ),
            Patch(places.cpp_code_cache(), "load_async", self._loaded, self.guarded, before=self._loads),
            Patch(worker, "_worker_compile_cpp", self._built, self.guarded, before=self._builds),
            Patch(places.cutlass_code_cache(), "compile", self._compiled, self.guarded, before=self._loads),
            Patch(places.triton_kernels(), "get", self._got_kernel, self.guarded),
            Patch(triton, "triton", self._asked_for_kernel, self.guarded, before=self._asks_for_kernel),
        ]

    def _begin(self, known: Any) -> None:
        self._begun[get_ident()].append((time.time_ns(), known))

    def _end(self) -> tuple[int, Any] | None:
        running = self._begun.get(get_ident())
        return running.pop() if running else None  # Nothing for a call that began before the watch did.

    # Python modules

    def _module_loads(self, args: Args, kwargs: Kwargs) -> None:
        path, attrs = _compat.argument(args, kwargs, 2, "path"), _compat.argument(args, kwargs, 4, "attrs")
        self._begin(places.is_loaded(args[0], path, attrs))

    def _module_loaded(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        began = self._end()
        if began is not None:
            self._tell("py_code", began, _compat.argument(args, kwargs, 1, "key"), error)

    # C++ libraries

    def _loads(self, args: Args, kwargs: Kwargs) -> None:
        self._begin(len(args[0].cache))

    def _loaded(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        """A library that is not in memory is told when a worker has found or built its file."""
        began = self._end()
        if began is None or error is not None:
            return
        start, known = began
        key = places.key_of_library(args[0], result)
        if key is not None and len(args[0].cache) > known:
            self.emit(self._libraries.asked, key, whose(self.recorder))
        else:
            self._tell("cpp_code", (start, True), key, None)

    def _builds(self, args: Args, kwargs: Kwargs) -> None:
        targets = places.targets(_compat.argument(args, kwargs, 1, "cpp_builders"))
        if not places.is_header(targets[-1]):
            self._begin(all(os.path.exists(target) for target in targets))

    def _built(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        targets = places.targets(_compat.argument(args, kwargs, 1, "cpp_builders"))
        began = None if places.is_header(targets[-1]) else self._end()
        if began is not None:
            key = places.key_of_lock(_compat.argument(args, kwargs, 0, "lock_path"))
            row = _row("cpp_code", began, key, error, tier="local")
            self.emit(self._libraries.done, row)

    # CUDA objects

    def _compiled(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        """An object that was there before this call began was found on disk."""
        began = self._end()
        if began is None:
            return
        start, known = began
        if error is None and len(args[0].cache) == known:
            self._tell("cuda_code", (start, True), result[1], None)
            return
        found = error is None and os.stat(result[0]).st_mtime_ns < start
        self._tell("cuda_code", (start, found), None if error else result[1], error, tier="local")

    # Triton kernels

    def _asks_for_kernel(self, args: Args, kwargs: Kwargs) -> None:
        self._found.pop(get_ident(), None)
        self._begin(None)

    def _got_kernel(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        self._found[get_ident()] = result is not None

    def _asked_for_kernel(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        """A kernel is looked for twice: when its code is made, to have it compiled early, and by the module."""
        began = self._end()
        if began is not None:
            found = self._found.pop(get_ident(), False)
            name = _compat.argument(args, kwargs, 1, "kernel_name")
            row = _row("triton_code", (began[0], found), name, error, whose(self.recorder))
            # The kernel may be a future: `kernels` tells how long it took.
            self.emit(made, dataclasses.replace(row, taken_s=None))

    def _tell(self, cache: str, began: tuple[int, bool], key: str | None, error: Raised, tier: str = "memory") -> None:
        self.emit(made, _row(cache, began, key, error, whose(self.recorder), tier))


class Libraries:
    """C++ libraries that were asked for, each told once; used in the writer's thread alone.

    A worker looks for the file in a thread of its own, and once more when the library is loaded: only the thread that
    asks knows for whom, only the first look says whether the file was there.
    """

    def __init__(self) -> None:
        #: key -> for whom, or what was found before it was known for whom; None once it was told.
        self._known: OrderedDict[str, dict[str, Any] | CacheLookup | None] = OrderedDict()

    def asked(self, key: str, owner: dict[str, Any]) -> Made:
        found = self._known.get(key)
        if isinstance(found, CacheLookup):
            return self._tell(found, owner)
        self._put(key, owner)
        return ()

    def done(self, row: CacheLookup) -> Made:
        owner = self._known.get(row.key or "", row)
        if isinstance(owner, dict):
            return self._tell(row, owner)
        if owner is row:
            self._put(row.key or "", row)
        return ()

    def _tell(self, row: CacheLookup, owner: dict[str, Any]) -> Made:
        self._put(row.key or "", None)
        return made(dataclasses.replace(row, **owner))

    def _put(self, key: str, value: dict[str, Any] | CacheLookup | None) -> None:
        self._known[key] = value
        self._known.move_to_end(key)
        if len(self._known) > REMEMBERED:
            self._known.popitem(last=False)


def _row(
    cache: str,
    began: tuple[int, bool],
    key: str | None,
    error: Raised,
    owner: dict[str, Any] | None = None,
    tier: str = "memory",
) -> CacheLookup:
    start, found = began
    taken_s = None if found or error is not None else (time.time_ns() - start) / 1e9
    outcome = "failed" if error is not None else "hit" if found else "miss"
    columns = {
        "cache": cache,
        "tier": tier,
        "action": "look_up",
        "outcome": outcome,
        "key": key,
        "taken_s": taken_s,
        **shield.columns(error, MAX_REASON),
    }
    return CacheLookup(time_ns=start, **(owner or {}), **columns)
