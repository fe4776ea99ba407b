"""Isolation of a trial: nothing is compiled before it, the settings of a fix apply, and everything is restored."""

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
from ..sources.hooks.torch_names import Unavailable
from . import torch_api

#: Settings that are lists of sources: the fix is added to what the user has set.
_JOINED = ("dynamic_sources", "unbacked_sources")
_CACHE_FOLDERS = {"TORCHINDUCTOR_CACHE_DIR": "", "TRITON_CACHE_DIR": "triton"}


def require_isolation() -> None:
    """CompilediagError, in one line, if the user's compile state cannot be set aside."""
    try:
        torch_api.extra_slot()
        inside = torch_api.is_in_compiled_code()
    except Unavailable as why:
        raise CompilediagError(f"fixes cannot be tried here: {why}") from None
    if inside:
        raise CompilediagError("fixes cannot be tried from inside compiled code")


@contextlib.contextmanager
def isolate(fix: dict[str, Any]) -> Iterator[None]:
    """In the block torch has compiled nothing, its caches on disk are empty, the settings of `fix` apply, and random
    numbers start from their current state. After it, torch's compiled code, settings, counters and random numbers are
    as before.
    """
    with contextlib.ExitStack() as stack:
        stack.enter_context(_use_empty_caches())
        stack.enter_context(torch_api.set_codes_aside())
        stack.enter_context(torch_api.set_profiles_aside())
        stack.enter_context(_keep_modes())
        stack.enter_context(_keep_random_state())
        for owner, settings in find_settings(fix):
            stack.enter_context(owner.patch(**settings))
        yield


def find_settings(fix: dict[str, Any]) -> Iterator[tuple[Any, dict[str, Any]]]:
    """Each setting of a fix with the config module that has it. CompilediagError if this torch lacks one."""
    for key, value in fix.items():
        try:
            owner = torch_api.find_config(key)
        except Unavailable as why:
            raise CompilediagError(f"this fix cannot be tried here: {why}") from None
        now = getattr(owner, key)
        yield owner, {key: f"{now},{value}" if key in _JOINED and now else value}


@contextlib.contextmanager
def _use_empty_caches() -> Iterator[None]:
    """Compile caches in a folder of their own: each run costs what a first run costs, and leaves no entry behind."""
    folder = tempfile.mkdtemp(prefix="compilediag-caches-")
    before = {name: os.environ.get(name) for name in _CACHE_FOLDERS}
    try:
        os.environ.update({name: os.path.join(folder, below) for name, below in _CACHE_FOLDERS.items()})
        torch_api.clear_cache_memory()
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name, None) if value is None else os.environ.update({name: value})
        torch_api.clear_cache_memory()
        shutil.rmtree(folder, ignore_errors=True)


#: Global modes that a workload may change: (read, set).
_MODES: tuple[tuple[Callable[[], Any], Callable[[Any], None]], ...] = (
    (torch.is_grad_enabled, torch.set_grad_enabled),
    (torch.get_default_dtype, torch.set_default_dtype),
    (torch.get_num_threads, torch.set_num_threads),
    (torch.are_deterministic_algorithms_enabled, torch.use_deterministic_algorithms),
    (torch.get_float32_matmul_precision, torch.set_float32_matmul_precision),
)


@contextlib.contextmanager
def _keep_modes() -> Iterator[None]:
    before = [get() for get, _ in _MODES]
    try:
        yield
    finally:
        for (get, put), value in zip(_MODES, before, strict=True):
            if get() != value:
                put(value)


@contextlib.contextmanager
def _keep_random_state() -> Iterator[None]:
    """The random states of torch, each device in use, Python and numpy are the same after the block as before it."""
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
