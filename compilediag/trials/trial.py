"""A run of the user's code beside their own: nothing compiled before, the settings of a fix in force, all put back."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from typing import Any

import torch

from ..errors import CompilediagError
from ..sources._compat import states
from ..sources.hooks.source import Unavailable

#: Settings that are lists of sources: what the user has set stays, and the fix is added.
_JOINED = ("dynamic_sources", "unbacked_sources")
_CACHE_FOLDERS = {"TORCHINDUCTOR_CACHE_DIR": "", "TRITON_CACHE_DIR": "triton"}


def require() -> None:
    """CompilediagError, in one line, where the compile state of the user can't be set aside."""
    try:
        states.extra_slot()
        inside = states.in_compiled_code()
    except Unavailable as why:
        raise CompilediagError(f"fixes can't be tried here: {why}") from None
    if inside:
        raise CompilediagError("fixes can't be tried from inside of compiled code")


@contextlib.contextmanager
def trial(fix: dict[str, Any]) -> Iterator[None]:
    """In the block torch has compiled nothing, its caches on disk are empty, `fix` is in force, and random numbers
    begin as they stand now; after it, torch's compiled code, settings, counters and random numbers are as before.
    """
    with contextlib.ExitStack() as stack:
        stack.enter_context(_empty_caches())
        stack.enter_context(states.codes_set_aside())
        stack.enter_context(states.learned_set_aside())
        stack.enter_context(_modes_kept())
        stack.enter_context(_random_kept())
        for owner, settings in _settings(fix):
            stack.enter_context(owner.patch(**settings))
        yield


def _settings(fix: dict[str, Any]) -> Iterator[tuple[Any, dict[str, Any]]]:
    for key, value in fix.items():
        try:
            owner = states.config_of(key)
        except Unavailable as why:
            raise CompilediagError(f"this fix can't be tried here: {why}") from None
        now = getattr(owner, key)
        yield owner, {key: f"{now},{value}" if key in _JOINED and now else value}


@contextlib.contextmanager
def _empty_caches() -> Iterator[None]:
    """Compile caches in a folder of their own: each run pays what a first run pays, and leaves no entry behind."""
    folder = tempfile.mkdtemp(prefix="compilediag-")
    before = {name: os.environ.get(name) for name in _CACHE_FOLDERS}
    try:
        os.environ.update({name: os.path.join(folder, below) for name, below in _CACHE_FOLDERS.items()})
        states.clear_memory_of_caches()
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name, None) if value is None else os.environ.update({name: value})
        states.clear_memory_of_caches()
        shutil.rmtree(folder, ignore_errors=True)


#: Modes of the whole program that a workload may leave switched: (what it is now, how it is set).
_MODES: tuple[tuple[Callable[[], Any], Callable[[Any], None]], ...] = (
    (torch.is_grad_enabled, torch.set_grad_enabled),
    (torch.get_default_dtype, torch.set_default_dtype),
    (torch.get_num_threads, torch.set_num_threads),
    (torch.are_deterministic_algorithms_enabled, torch.use_deterministic_algorithms),
    (torch.get_float32_matmul_precision, torch.set_float32_matmul_precision),
)


@contextlib.contextmanager
def _modes_kept() -> Iterator[None]:
    before = [get() for get, _ in _MODES]
    try:
        yield
    finally:
        for (get, put), value in zip(_MODES, before, strict=True):
            if get() != value:
                put(value)


@contextlib.contextmanager
def _random_kept() -> Iterator[None]:
    """The random numbers of torch, of each device in use, of Python and of numpy go on after the block as before it."""
    numpy = sys.modules.get("numpy")
    python_state, numpy_state = random.getstate(), numpy.random.get_state() if numpy else None
    devices = range(torch.cuda.device_count()) if torch.cuda.is_initialized() else ()
    with torch.random.fork_rng(devices=devices):
        try:
            yield
        finally:
            random.setstate(python_state)
            if numpy and numpy_state is not None:
                numpy.random.set_state(numpy_state)
