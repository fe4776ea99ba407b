"""Run a program until it has compiled what a session saw, and save torch's cache artifacts.

The scripts that `session.warmup()` writes call this. Artifacts hold the entries of FxGraphCache, AOTAutogradCache, the
autotuning results and the profile, but no C++ kernels. Of a job with ranks, each saves its own; none ends before all
have saved theirs, because the others would wait for it at a collective.
"""

from __future__ import annotations

import _thread
import contextlib
import os
import sys
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from ..diagnosis.rules.costs import find_repeated_time, list_reasons
from ..diagnosis.variants import Variants, list_missing
from ..errors import CompilediagError
from ..events import KernelCompile, Rows
from ..formatting import format_amount, format_bytes
from ..recording.active_recording import begin, end_all
from ..system.files import make_absolute, write_file
from . import torch_api

__all__ = ["Variants", "Warmup", "save_artifacts"]

#: What stands for the number of the rank in the path of its artifacts.
RANK = "{rank}"
#: s between two looks at what is compiled.
INTERVAL_S = 0.25


@dataclass(frozen=True)
class Warmup:
    """What a warm-up saved, of how many functions (`variants`), to `path`; `size` in bytes.

    `missing` has the functions of which not everything was compiled, `uncached` what the next process compiles again.
    """

    path: Path
    size: int
    variants: int
    missing: tuple[str, ...]
    uncached: tuple[str, ...]

    def __str__(self) -> str:
        saved = f"saved the artifacts of {format_amount(self.variants, 'function')} to {self.path}"
        lines = [f"compilediag: {saved} ({format_bytes(self.size)})"]
        lines += [f"not complete: {text}" for text in self.missing]
        return "\n".join([*lines, *(f"compiled again in the next process: {text}" for text in self.uncached)])


class CompletionWatch(threading.Thread):
    """Once everything that is expected has been compiled, it interrupts the main thread, as Ctrl-C does.

    With `end_rank` it waits for the other ranks, and calls that instead, in this thread: the main thread may stand in a
    collective, which nothing interrupts.
    """

    def __init__(self, data: Rows, expected: Sequence[Variants], end_rank: Callable[[], object] | None = None):
        super().__init__(name="compilediag-warmup", daemon=True)
        self._data = data
        self._expected = expected
        self._end_rank = end_rank
        self._stop_asked = threading.Event()
        #: True once the program was interrupted because it had compiled everything.
        self.is_complete = False

    def run(self) -> None:
        while not self._stop_asked.wait(INTERVAL_S):
            if not list_missing(self._expected, self._data):
                self.is_complete = True
                if self._end_rank is None:
                    _thread.interrupt_main()
                else:
                    self._end_with_others(self._end_rank)
                return

    def _end_with_others(self, end_rank: Callable[[], object]) -> None:
        self._meet("compiled")
        try:
            end_rank()
        except CompilediagError as error:
            print(f"compilediag: {error}", file=sys.stderr)
        finally:
            self._meet("saved")
            for stream in (sys.stdout, sys.stderr):
                stream.flush()
            os._exit(0)

    def _meet(self, where: str) -> None:
        """Wait until all ranks are there. Those of a job without a process group do not wait for each other."""
        if not torch.distributed.is_available() or not torch.distributed.is_initialized():
            return
        store, ranks = torch_api.DEFAULT_STORE.get_loaded()(), torch.distributed.get_world_size()
        with contextlib.suppress(RuntimeError):  # The rank that has the store has ended.
            there = store.add(f"compilediag/{where}", 1)
            while there < ranks and not self._stop_asked.wait(INTERVAL_S):
                there = store.add(f"compilediag/{where}", 0)

    def stop(self) -> None:
        """The program has ended."""
        self._stop_asked.set()
        self.join()


def save_artifacts(
    run: Callable[[], object], expected: Iterable[Variants], path: str | os.PathLike[str], distributed: bool = False
) -> Warmup:
    """Call `run` until everything in `expected` is compiled, and write torch's cache artifacts to `path`.

    The program is ended by a KeyboardInterrupt once nothing is missing, so that a training of hours takes minutes. What
    it raises or prints before is its own. Prints what was saved, and what the next process compiles again.
    CompilediagError if nothing was compiled that torch can save.

    `distributed`: this is one rank of a job that torchrun started. "{rank}" in the path becomes its number, and the
    process ends, without its exit handlers, once all ranks have saved theirs.
    """
    wanted = list(expected)
    target = make_absolute(os.fspath(path).replace(RANK, os.environ.get("RANK", "0")) if distributed else path)
    recording = begin(None, "lean", [])

    def end() -> Warmup:
        end_all()
        saved = torch.compiler.save_cache_artifacts()
        if saved is None:
            raise CompilediagError(
                "torch has no artifacts to save: nothing was compiled with Inductor, or its caches are off"
            )
        content, _ = saved
        write_file(target, content)
        data = recording.data
        uncached = (*list_reasons(find_repeated_time(data)), *_describe_kernels(data.rows(KernelCompile)))
        warmup = Warmup(target, len(content), len(wanted), tuple(list_missing(wanted, data)), uncached)
        print(warmup, file=sys.stderr)
        return warmup

    watch = CompletionWatch(recording.data, wanted, end if distributed else None)
    watch.start()
    try:
        _run_until_complete(run, watch)
    finally:
        warmup = end()
    return warmup


def _run_until_complete(run: Callable[[], object], watch: CompletionWatch) -> None:
    try:
        try:
            run()
        finally:
            watch.stop()
    except KeyboardInterrupt:
        if not watch.is_complete:
            raise
    except SystemExit as ended:
        if ended.code not in (None, 0):
            raise


def _describe_kernels(kernels: Iterable[KernelCompile]) -> list[str]:
    """C++ kernels are files of the cache folder and no part of the artifacts."""
    names = {kernel.name for kernel in kernels if kernel.language == "cpp"}
    if not names:
        return []
    amount = format_amount(len(names), "C++ kernel")
    return [
        f"{amount}: torch's artifacts hold no C++ libraries. Set TORCHINDUCTOR_CACHE_DIR to one folder here and in the "
        "next process, or copy that folder, and they are found too."
    ]
