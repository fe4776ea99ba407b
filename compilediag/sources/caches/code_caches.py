"""Generated code: its caches (Python modules, C++ libraries, CUDA objects, triton kernels) and the workers that compile
the code that is not in them.

The outer caches (FxGraphCache and AOTAutogradCache) give a module's source; here it is imported, built or compiled.
C++ is built in threads of this process (in the compiling one if `compile_threads` is 1); triton kernels in processes
that torch starts (`worker_start_method`: subprocess, fork or spawn), which report how long they took. The generated
module waits for all of its kernels at its end: there the name of each kernel is known, and whether it failed.
"""

from __future__ import annotations

import dataclasses
import os
import threading
from collections import OrderedDict
from collections.abc import Mapping
from concurrent.futures import BrokenExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

from ...decode.records.compilation_metrics import CPU_CHECK
from ...events import CacheLookup, KernelCompile, Phase
from ...system import clock
from ...system.own_errors import describe_error, error_columns
from ..compile_context import AttemptColumns, EventSink, Made, OwnerColumns, PerThread
from ..dynamo.torch_api import COMPILE_CONTEXT, current_compile_id
from ..hooks.patches import Args, Kwargs, Raised
from ..hooks.source import MAX_REASON, CacheSource, hook, hook_before
from ..hooks.torch_names import call_argument, call_arguments
from . import torch_api

#: Libraries that are remembered until the other thread reports.
MAX_REMEMBERED = 4_096
WRAPPER = "cpp_wrapper"
Key = TypeVar("Key")
Value = TypeVar("Value")


# C++ libraries in the writer's thread: rows that are complete only when several threads have reported. The thread that
# compiles knows for which compile a library is, and the name of its kernel; the worker's thread knows whether the file
# existed and how long the build took.


@dataclass(slots=True)
class Build:
    """What a worker did for a C++ library or a kernel; `duration_s` is None if its file existed."""

    time_ns: int
    where: str
    duration_s: float | None = None
    fail_reason: str | None = None


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
        self._done: OrderedDict[str, Build] = OrderedDict()
        #: key -> name and compile of a library that no generated module waits for.
        self._claimed: OrderedDict[str, tuple[str, AttemptColumns]] = OrderedDict()

    def finish(self, key: str, build: Build) -> Made:
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
        return (make_kernel_row(name, Build(clock.now_ns(), "process"), ids),)

    def fail(self, key: str | None, time_ns: int, reason: str, ids: AttemptColumns) -> Made:
        """The library of a kernel could not be built in the compiling thread."""
        build = self._done.pop(key or "", None) or Build(time_ns, "process", None, reason)
        return (make_kernel_row(key, build, ids),)


def make_kernel_row(
    name: str | None, build: Build, ids: AttemptColumns, language: str = "cpp", outcome: str | None = None
) -> KernelCompile:
    done = "failed" if build.fail_reason else "cached" if build.duration_s is None else "compiled"
    return KernelCompile(
        time_ns=build.time_ns,
        duration_s=build.duration_s,
        name=name,
        language=language,
        where=build.where,
        worker_pid=os.getpid() if build.where in ("process", "thread") else None,
        outcome=outcome or done,
        fail_reason=build.fail_reason,
        **ids,
    )


def _put(where: OrderedDict[Key, Value], key: Key, value: Value) -> None:
    where[key] = value
    where.move_to_end(key)
    if len(where) > MAX_REMEMBERED:
        where.popitem(last=False)


#: A precompiled header is no kernel, and takes longer than most.
HEADER, HEADERS = "precompiled header", (".gch", ".pch")


@dataclasses.dataclass(slots=True)
class KernelState:
    """What one thread does with kernels."""

    #: Key of the C++ library that the thread asked for last.
    library: str | None = None
    #: Whether the triton kernel that the thread orders was found in memory; whether it was compiled in this thread.
    is_found: bool = False
    is_compiled: bool = False


#: When a watched call began, and what it found in the cache.
Begun = tuple[int, Any]


class CodeCaches(CacheSource):
    name = "code_caches"
    needs = (COMPILE_CONTEXT, torch_api.FUTURE, torch_api.BUNDLED_FUTURE)
    _thread = PerThread(KernelState)

    def __init__(self, recorder: EventSink, detail: str):
        super().__init__(recorder, detail)
        #: id of a C++ kernel or its future -> itself, so that the id stays its own, and the key of its library.
        self._ordered: OrderedDict[int, tuple[Any, str | None]] = OrderedDict()
        #: name of a triton kernel -> when a worker was asked for it, and the kind of worker.
        self._sent: OrderedDict[str, tuple[int, str]] = OrderedDict()
        self._look_ups, self._builds = LibraryLookUps(), LibraryBuilds()

    # The CPU's vector instructions

    @hook(torch_api.INSTRUCTIONS_CHECKED, before=CacheSource.note_time)
    def _instructions_checked(
        self, args: Args, kwargs: Kwargs, result: Any, error: Raised, began_ns: int | None
    ) -> None:
        """torch does not time this, although it can take longer than a compile: it starts an interpreter."""
        if began_ns is not None:
            running = self.recorder.progress.get(threading.get_ident())
            around = running.state()["phases"] if running is not None else []
            phase = Phase(
                time_ns=began_ns,
                duration_s=(clock.now_ns() - began_ns) / 1e9,
                name=CPU_CHECK,
                parent=around[-1] if around else None,
                depth=len(around),
                **self.context.current_attempt(),
            )
            self.emit_event(phase)

    # Python modules

    @hook_before(torch_api.MODULE_LOADED)
    def _before_module(self, args: Args, kwargs: Kwargs) -> Begun:
        path, attrs = call_arguments(args, kwargs, path=2, attrs=4)
        # With attributes, the module is made anew.
        return clock.now_ns(), attrs is None and path in args[0].modules_no_attr

    @hook(torch_api.MODULE_LOADED)
    def _module_loaded(self, args: Args, kwargs: Kwargs, result: Any, error: Raised, began: Begun | None) -> None:
        if began is not None:
            self._emit_look_up("py_code", began, call_argument(args, kwargs, 1, "key"), error)

    # C++ libraries

    @hook_before(torch_api.LIBRARY_LOADED, torch_api.CUDA_COMPILED)
    def _before_cached_call(self, args: Args, kwargs: Kwargs) -> Begun:
        return clock.now_ns(), len(args[0].cache)

    @hook(torch_api.LIBRARY_LOADED)
    def _library_loaded(self, args: Args, kwargs: Kwargs, result: Any, error: Raised, began: Begun | None) -> None:
        """The look-up of a library that is not in memory becomes a row when a worker has found or built its file."""
        thread = self._thread
        # Among the last of its cache, if it is new.
        known_last = reversed(list(args[0].cache.items())) if error is None else ()
        thread.library = key = next((name for name, each in known_last if each is result), None)
        if key is not None and args[0].__name__ == torch_api.CPP_WRAPPER_CACHE.name:
            self.emit(self._builds.claim, WRAPPER, key, self.context.current_attempt())
        if began is None or error is not None:
            return
        start, known = began
        if key is not None and len(args[0].cache) > known:
            self.emit(self._look_ups.ask, key, self.context.current_columns())
        else:
            self._emit_look_up("cpp_code", (start, True), key, None)

    @hook_before(torch_api.CPP_BUILT)
    def _before_build(self, args: Args, kwargs: Kwargs) -> Begun:
        targets = torch_api.target_files(call_argument(args, kwargs, 1, "cpp_builders"))
        return clock.now_ns(), all(os.path.exists(target) for target in targets)

    @hook(torch_api.CPP_BUILT)
    def _on_built(self, args: Args, kwargs: Kwargs, result: Any, error: Raised, began: Begun | None) -> None:
        if began is None:
            return
        lock, builders = call_arguments(args, kwargs, lock_path=0, cpp_builders=1)
        start, exists = began
        # In a thread of torch's pool no compile of its own runs.
        is_worker = threading.current_thread().name.startswith("ThreadPool") and current_compile_id() is None
        build = Build(
            start,
            "thread" if is_worker else "process",
            None if exists else (clock.now_ns() - start) / 1e9,
            None if error is None else describe_error(error)[:MAX_REASON],
        )
        if not torch_api.target_files(builders)[-1].endswith(HEADERS):
            key = os.path.basename(lock).removesuffix(".lock")
            self.emit(self._look_ups.answer, _make_look_up("cpp_code", began, key, error, tier="local"))
            self.emit(self._builds.finish, key, build)
        elif not exists:
            self.emit_event(make_kernel_row(HEADER, build, self.context.current_attempt()))

    @hook(torch_api.CPP_ORDERED, torch_api.CPP_BINDING_ORDERED)
    def _cpp_ordered(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        thread = self._thread
        key, thread.library = thread.library, None
        if error is not None:  # It was built in this thread.
            reason = describe_error(error)[:MAX_REASON]
            self.emit(self._builds.fail, key, clock.now_ns(), reason, self.context.current_attempt())
        else:
            _put(self._ordered, id(result), (result, key))

    # CUDA objects

    @hook(torch_api.CUDA_COMPILED)
    def _cuda_compiled(self, args: Args, kwargs: Kwargs, result: Any, error: Raised, began: Begun | None) -> None:
        """An object that existed before this call began was found on disk."""
        if began is None:
            return
        start, known = began
        if error is None and len(args[0].cache) == known:
            self._emit_look_up("cuda_code", (start, True), result[1], None)
            return
        found = error is None and clock.convert(os.stat(result[0]).st_mtime_ns) < start
        self._emit_look_up("cuda_code", (start, found), None if error else result[1], error, tier="local")

    # Triton kernels

    @hook_before(torch_api.TRITON_ORDERED)
    def _before_triton(self, args: Args, kwargs: Kwargs) -> int:
        thread = self._thread
        thread.is_found = thread.is_compiled = False
        return clock.now_ns()

    @hook(torch_api.KERNEL_LOOKED_UP)
    def _kernel_looked_up(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        self._thread.is_found = result is not None

    @hook(torch_api.TRITON_ORDERED)
    def _triton_ordered(self, args: Args, kwargs: Kwargs, result: Any, error: Raised, began_ns: int | None) -> None:
        """A kernel is looked up twice: when its code is generated, to compile it early, and by the module."""
        thread, name = self._thread, call_argument(args, kwargs, 1, "kernel_name")
        if began_ns is not None:
            row = _make_look_up("triton_code", (began_ns, thread.is_found), name, error)
            # The kernel may be a future: `kernels` has how long it took.
            self.emit_event(dataclasses.replace(row, taken_s=None, **self.context.current_columns()))
        if error is not None:
            self._fail(name, error)
        elif torch_api.is_future(result):
            if not torch_api.is_from_bundle(result) and name not in self._sent:
                _put(self._sent, name, (clock.now_ns(), torch_api.worker_kind()))
        elif not thread.is_compiled:
            self._emit_kernel(name, Build(clock.now_ns(), "process"))

    @hook(torch_api.KERNEL_COMPILED)
    def _kernel_compiled(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        name, info = call_arguments(args, kwargs, kernel_name=0, info=1)
        seconds = info["compile_time_us"] / 1e6
        now = clock.now_ns()
        sent = self._sent.pop(name, (now - int(seconds * 1e9), "process"))
        self._thread.is_compiled = True
        # torch measures with the wall clock.
        is_possible = 0 <= seconds * 1e9 <= now - sent[0] + clock.TOLERANCE_NS
        self._emit_kernel(name, Build(*sent, seconds if is_possible else None), "compiled")

    def _fail(self, name: str, error: BaseException) -> None:
        """A pool that is broken refuses the kernel at once."""
        where = torch_api.worker_kind() if isinstance(error, BrokenExecutor) else "process"
        sent = self._sent.pop(name, (clock.now_ns(), where))
        self._emit_kernel(name, Build(*sent, fail_reason=describe_error(error)[:MAX_REASON]))

    # What a generated module waits for

    @hook_before(torch_api.KERNELS_AWAITED)
    def _before_wait(self, args: Args, kwargs: Kwargs) -> dict[str, Any]:
        scope = call_argument(args, kwargs, 1, "scope")
        return {n: v for n, v in scope.items() if id(v) in self._ordered or torch_api.is_future(v)}

    @hook(torch_api.KERNELS_AWAITED)
    def _on_awaited(
        self, args: Args, kwargs: Kwargs, result: Any, error: Raised, awaited: dict[str, Any] | None
    ) -> None:
        """If the wait raised, the first kernel that is still a future is the one that failed."""
        scope, awaited = call_argument(args, kwargs, 1, "scope"), awaited or {}
        missing = [n for n, v in awaited.items() if torch_api.is_future(v) and scope.get(n) is v] if error else []
        for name, value in awaited.items():
            _, key = self._ordered.pop(id(value), (None, None))
            if key is not None and name not in missing[1:]:
                self.emit(self._builds.claim, name, key, self.context.current_attempt())
            elif torch_api.is_from_bundle(value) and name not in missing:
                self._emit_kernel(name, Build(clock.now_ns(), "process"))
            elif name in missing[:1] and error is not None:
                self._fail(name, error)

    # Rows

    def _emit_look_up(
        self, cache: str, began: tuple[int, bool], key: str | None, error: Raised, tier: str = "memory"
    ) -> None:
        row = _make_look_up(cache, began, key, error, tier)
        self.emit_event(dataclasses.replace(row, **self.context.current_columns()))

    def _emit_kernel(self, name: str, build: Build, outcome: str | None = None) -> None:
        self.emit_event(make_kernel_row(name, build, self.context.current_attempt(), "triton", outcome))


def _make_look_up(
    cache: str, began: tuple[int, bool], key: str | None, error: Raised, tier: str = "memory"
) -> CacheLookup:
    start, found = began
    return CacheLookup(
        time_ns=start,
        cache=cache,
        tier=tier,
        action="look_up",
        outcome="failed" if error is not None else "hit" if found else "miss",
        key=key,
        taken_s=None if found or error is not None else (clock.now_ns() - start) / 1e9,
        **error_columns(error, MAX_REASON),
    )
