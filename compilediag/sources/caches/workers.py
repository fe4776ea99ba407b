"""Compile workers: which kernels were compiled, where, and for how long.

C++ is built in threads of this process (in the compiling one if `compile_threads` is 1); triton kernels in processes
that torch starts (`worker_start_method`: subprocess, fork or spawn), which say how long they took. The generated module
waits for all of its kernels at its end, and there it is known which name a kernel has and which never came.
"""

from __future__ import annotations

import os
import threading
import time
from collections import OrderedDict
from dataclasses import dataclass
from threading import get_ident
from typing import Any

from ...events import KernelCompile
from ...recording import Made
from .. import _compat
from .._compat import code_caches as places
from ..hooks import shield
from ..hooks.patching import Args, Kwargs, Patch, Raised
from ..hooks.source import Source, made

#: Kernels that are on their way, of which no more than these are remembered.
REMEMBERED = 4_096
#: Characters of a compiler's complaint that are kept.
MAX_REASON = 2_000
HEADER, WRAPPER = "precompiled header", "cpp_wrapper"


@dataclass(slots=True)
class Build:
    """What a worker did for a C++ library; `duration_s` is None if its file was there."""

    time_ns: int
    where: str
    duration_s: float | None
    fail_reason: str | None


class Workers(Source):
    name = "workers"

    def __init__(self, *args: Any):
        super().__init__(*args)
        #: thread -> key of the C++ library that it asked for last.
        self._asked: dict[int, str | None] = {}
        #: id of a C++ kernel or its future -> itself, so that the id stays its own, and the key of its library.
        self._ordered: OrderedDict[int, tuple[Any, str | None]] = OrderedDict()
        #: name of a triton kernel -> when a worker was asked for it, and what the worker is.
        self._sent: OrderedDict[str, tuple[int, str]] = OrderedDict()
        #: thread -> whether the triton kernel that it asks for was compiled in it.
        self._compiled_here: dict[int, bool] = {}
        #: thread -> when the build that runs in it began, and whether there is anything to build.
        self._begun: dict[int, tuple[int, bool]] = {}
        #: thread -> the kernels that its generated module waits for.
        self._awaited: dict[int, dict[str, Any]] = {}
        self._libraries = Builds()

    @classmethod
    def probe(cls) -> None:
        places.cpp_code_cache()
        places.cpp_worker_module()
        places.async_compile()
        places.kernel_info_module()

    def patches(self) -> list[Patch]:
        owner, worker = places.async_compile(), places.cpp_worker_module()
        return [
            Patch(places.cpp_code_cache(), "load_async", self._looked_up, self.guarded),
            Patch(worker, "_worker_compile_cpp", self._built, self.guarded, before=self._builds),
            Patch(owner, "cpp", self._ordered_cpp, self.guarded),
            Patch(owner, "cpp_pybinding", self._ordered_cpp, self.guarded),
            Patch(owner, "triton", self._ordered_triton, self.guarded, before=self._orders_triton),
            Patch(places.kernel_info_module(), "_add_triton_kernel_info", self._compiled, self.guarded),
            Patch(owner, "wait", self._waited, self.guarded, before=self._waits),
        ]

    # C++

    def _looked_up(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        key = None if error is not None else places.key_of_library(args[0], result)
        self._asked[get_ident()] = key
        if key is not None and places.is_wrapper(args[0]):
            self.emit(self._libraries.claim, WRAPPER, key, _compat.current_compile_id())

    def _ordered_cpp(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        key = self._asked.pop(get_ident(), None)
        if error is not None:  # It was built here and now.
            self.emit(
                self._libraries.failed,
                key,
                time.time_ns(),
                shield.told(error)[:MAX_REASON],
                _compat.current_compile_id(),
            )
        else:
            _put(self._ordered, id(result), (result, key))

    def _builds(self, args: Args, kwargs: Kwargs) -> None:
        targets = places.targets(_compat.argument(args, kwargs, 1, "cpp_builders"))
        self._begun[get_ident()] = time.time_ns(), not all(os.path.exists(target) for target in targets)

    def _built(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        start, needed = self._begun.pop(get_ident(), (0, False))
        if not start:
            return
        lock, builders = (_compat.argument(args, kwargs, *at) for at in enumerate(("lock_path", "cpp_builders")))
        build = Build(
            start,
            "thread" if _is_worker_thread() else "process",
            (time.time_ns() - start) / 1e9 if needed else None,
            None if error is None else shield.told(error)[:MAX_REASON],
        )
        if not places.is_header(places.targets(builders)[-1]):
            self.emit(self._libraries.done, places.key_of_lock(lock), build)
        elif needed:
            self.emit(made, _cpp(HEADER, build, _compat.current_compile_id()))

    # Triton

    def _orders_triton(self, args: Args, kwargs: Kwargs) -> None:
        self._compiled_here[get_ident()] = False

    def _ordered_triton(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        name, compiled = _compat.argument(args, kwargs, 1, "kernel_name"), self._compiled_here.pop(get_ident(), False)
        if error is not None:
            self._failed(name, error)
        elif places.is_future(result):
            if not places.is_from_bundle(result) and name not in self._sent:
                _put(self._sent, name, (time.time_ns(), places.worker_kind()))
        elif not compiled:
            self._tell(name, (time.time_ns(), "process"), outcome="cached")

    def _compiled(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        name, info = (_compat.argument(args, kwargs, *at) for at in enumerate(("kernel_name", "info")))
        seconds = info["compile_time_us"] / 1e6
        sent = self._sent.pop(name, (time.time_ns() - int(seconds * 1e9), "process"))
        if get_ident() in self._compiled_here:
            self._compiled_here[get_ident()] = True
        self._tell(name, sent, outcome="compiled", duration_s=seconds)

    def _failed(self, name: str, error: BaseException) -> None:
        """A pool that is broken refuses the kernel at once."""
        where = places.worker_kind() if places.is_broken_pool(error) else "process"
        sent = self._sent.pop(name, (time.time_ns(), where))
        self._tell(name, sent, outcome="failed", fail_reason=shield.told(error)[:MAX_REASON])

    def _tell(self, name: str, sent: tuple[int, str], **columns: Any) -> None:
        time_ns, where = sent
        pid = os.getpid() if where == "process" else None
        told = {"name": name, "language": "triton", "where": where, "worker_pid": pid, **columns}
        self.emit(made, KernelCompile(time_ns=time_ns, compile_id=_compat.current_compile_id(), **told))

    # What a generated module waits for

    def _waits(self, args: Args, kwargs: Kwargs) -> None:
        scope = _compat.argument(args, kwargs, 1, "scope")
        wanted = {n: v for n, v in scope.items() if id(v) in self._ordered or places.is_future(v)}
        self._awaited[get_ident()] = wanted

    def _waited(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        """Of kernels that were to come, the first that is still to come is the one that failed."""
        wanted = self._awaited.pop(get_ident(), {})
        scope = _compat.argument(args, kwargs, 1, "scope")
        missing = [n for n, v in wanted.items() if places.is_future(v) and scope.get(n) is v] if error else []
        for name, value in wanted.items():
            _, key = self._ordered.pop(id(value), (None, None))
            if key is not None and name not in missing[1:]:
                self.emit(self._libraries.claim, name, key, _compat.current_compile_id())
            elif places.is_from_bundle(value) and name not in missing:
                self._tell(name, (time.time_ns(), "process"), outcome="cached")
            elif name in missing[:1] and error is not None:
                self._failed(name, error)


class Builds:
    """What workers did for C++ libraries, until their kernels' names are known; used in the writer's thread alone."""

    def __init__(self) -> None:
        self._done: OrderedDict[str, Build] = OrderedDict()
        #: key -> name and compile of a library that nobody waits for.
        self._claimed: OrderedDict[str, tuple[str, str | None]] = OrderedDict()

    def done(self, key: str, build: Build) -> Made:
        """A worker has looked after a library: once more when it is loaded, which tells nothing new."""
        known = self._done.get(key)
        if known is None or known.duration_s is None:
            _put(self._done, key, build)
        if key not in self._claimed:
            return ()
        name, compile_id = self._claimed.pop(key)
        return self.claim(name, key, compile_id)

    def claim(self, name: str, key: str, compile_id: str | None) -> Made:
        """The name and compile of a library's kernel are known."""
        build = self._done.pop(key, None)
        if build is not None:
            return made(_cpp(name, build, compile_id))
        if name == WRAPPER:
            _put(self._claimed, key, (name, compile_id))
            return ()
        return made(_cpp(name, Build(time.time_ns(), "process", None, None), compile_id))

    def failed(self, key: str | None, time_ns: int, reason: str, compile_id: str | None) -> Made:
        build = self._done.pop(key or "", None) or Build(time_ns, "process", None, reason)
        return made(_cpp(key, build, compile_id))


def _cpp(name: str | None, build: Build, compile_id: str | None) -> KernelCompile:
    outcome = "failed" if build.fail_reason else "cached" if build.duration_s is None else "compiled"
    columns = {"duration_s": build.duration_s, "where": build.where, "fail_reason": build.fail_reason}
    told = {"name": name, "language": "cpp", "worker_pid": os.getpid(), "outcome": outcome}
    return KernelCompile(time_ns=build.time_ns, compile_id=compile_id, **columns, **told)


def _put(where: OrderedDict[Any, Any], key: Any, value: Any) -> None:
    where[key] = value
    if len(where) > REMEMBERED:
        where.popitem(last=False)


def _is_worker_thread() -> bool:
    """True in a thread of torch's pool, in which no compile of its own runs."""
    return threading.current_thread().name.startswith("ThreadPool") and _compat.current_compile_id() is None
