"""Private names of torch for trials: where it keeps what it has learned of the program, and how to set that aside.

Dynamo's cache entries, and its decision to skip a frame or to give up, are stored on the code object: in the slot of
its `co_extra` that CPython gave to torch. torch can only delete them (`torch._dynamo.reset`). Here the slot is emptied
with its content kept, and filled again: a code object with an empty slot is one that torch has never seen.

Read in the sources of torch 2.11.0, 2.13.0 and 2.15.0.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import importlib
import sys
import types
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ..decode.config_modules import find_config_module
from ..sources.dynamo.torch_api import (
    COMPILED_CODES,
    EVAL_FRAME,
    FRAME_ACTION,
    FRAME_CALLBACK,
    FRAME_STRATEGY,
    PGO,
    SET_STRATEGY,
    UTILS,
    compiled_codes,
)
from ..sources.hooks.torch_names import TorchName, Unavailable

RESET_CODE = TorchName(EVAL_FRAME, "reset_code")
RESET_PROFILE = TorchName(PGO, "reset_code_state")
#: What torch has learned of sizes in this process.
PROFILES = (
    TorchName(PGO, "_CODE_STATE", required=False),
    TorchName(PGO, "_INIT_CODE_STATE", required=False),
    TorchName(PGO, "_LOGGED_DYNAMIC_ALLOWLIST", required=False),
)
DYNAMIC_SOURCES = TorchName(PGO, "_KNOWN_DYNAMIC_SOURCES", required=False)
COUNTERS = TorchName(UTILS, "counters")
#: Lists to which torch appends with every compile, for its users to read.
LISTS = (
    TorchName(UTILS, "_compilation_metrics", required=False),
    TorchName(UTILS, "graph_break_reasons", required=False),
)
#: A module that `torch.compile` wrapped.
COMPILED_MODULE = TorchName("torch._dynamo.eval_frame", "OptimizedModule")
CLEAR_CACHES = TorchName("torch._inductor.utils", "clear_caches", required=False)
#: What `torch.compile` makes of a backend's name: an object that is called with a graph.
INDUCTOR_BACKEND = TorchName("torch", "_TorchCompileInductorWrapper")
NAMED_BACKEND = TorchName("torch", "_TorchCompileWrapper")

_WORD = ctypes.sizeof(ctypes.c_void_p)


@dataclass(frozen=True)
class CodeSlot:
    """`offset`: of the pointer `co_extra` in a code object, in bytes. `index`: of torch's slot in the array there."""

    offset: int
    index: int

    def cell(self, code: types.CodeType) -> ctypes.c_void_p | None:
        """The memory that holds the pointer to torch's state of `code`; None if this code object has no array yet."""
        array = ctypes.c_void_p.from_address(id(code) + self.offset).value
        if array is None or ctypes.c_ssize_t.from_address(array).value <= self.index:
            return None
        return ctypes.c_void_p.from_address(array + _WORD * (1 + self.index))


def _get_extra(code: types.CodeType, index: int) -> int | None:
    """The content of a slot by CPython's own function."""
    api = ctypes.pythonapi
    get = getattr(api, "PyUnstable_Code_GetExtra", None) or getattr(api, "_PyCode_GetExtra", None)
    if get is None:
        raise Unavailable("this Python has no PyUnstable_Code_GetExtra")
    found = ctypes.c_void_p()
    if get(ctypes.py_object(code), ctypes.c_ssize_t(index), ctypes.byref(found)) != 0:
        raise Unavailable("this Python's PyUnstable_Code_GetExtra failed")
    return found.value


def _words(code: types.CodeType) -> list[int]:
    return list((ctypes.c_size_t * (types.CodeType.__basicsize__ // _WORD)).from_address(id(code)))


@functools.cache
def extra_slot() -> CodeSlot:
    """Where code objects hold torch's state; Unavailable unless a fresh code object shows it without doubt.

    No layout is assumed: torch stores state on a fresh code object, the one word that changed from NULL is `co_extra`,
    and CPython's own function has to read the same state there, and nothing once the slot is emptied.
    """
    if sys.implementation.name != "cpython":
        raise Unavailable("compile states can be set aside on CPython only")
    set_strategy, strategy, action = SET_STRATEGY.find(), FRAME_STRATEGY.find(), FRAME_ACTION.find()
    code = compile("0", "<compilediag>", "eval")
    before = _words(code)
    set_strategy(code, strategy(action.SKIP, action.DEFAULT))
    changed = [n for n, (old, new) in enumerate(zip(before, _words(code), strict=True)) if old == 0 and new != 0]
    indices = [index for index in range(64) if _get_extra(code, index) is not None]
    if len(changed) != 1 or len(indices) != 1:
        raise Unavailable("the code objects of this Python do not show where torch's state is")
    slot = CodeSlot(changed[0] * _WORD, indices[0])
    cell = slot.cell(code)
    if cell is None or cell.value != _get_extra(code, slot.index):
        raise Unavailable("the code objects of this Python hold torch's state elsewhere")
    state, cell.value = cell.value, None
    emptied = _get_extra(code, slot.index) is None
    cell.value = state
    if not emptied or _get_extra(code, slot.index) != state:
        raise Unavailable("torch's state of a code object cannot be set aside on this Python")
    return slot


@contextlib.contextmanager
def set_codes_aside() -> Iterator[None]:
    """In the block no code object has compiled code; after it each has its own again, without what the block compiled.

    No other thread may run compiled code meanwhile: what it compiles in the block is dropped at its end.
    """
    slot, reset_code, tracker = extra_slot(), RESET_CODE.find(), COMPILED_CODES.find()
    kept: list[tuple[types.CodeType, int]] = []
    try:
        for code in compiled_codes():
            cell = slot.cell(code)
            if cell is not None and cell.value is not None:
                kept.append((code, cell.value))
                cell.value = None
        yield
    finally:
        for code in compiled_codes():
            reset_code(code)
        for code, state in kept:
            reset_code(code)
            cell = slot.cell(code)
            if cell is not None:
                cell.value = state
            tracker.add(code)


@contextlib.contextmanager
def set_profiles_aside() -> Iterator[None]:
    """In the block torch remembers no sizes or counts of earlier calls; after it everything is back."""
    reset_profile, counters = RESET_PROFILE.find(), COUNTERS.find()
    kept = [(name.owner(), name.name, name.find()) for name in PROFILES if name.exists()]
    known = DYNAMIC_SOURCES.find() if DYNAMIC_SOURCES.exists() else set()
    kept_known = set(known)
    counted = {group: counts.copy() for group, counts in counters.items()}
    lists = [(values, list(values)) for name in LISTS if name.exists() and (values := name.find()) is not None]
    try:
        reset_profile()
        known.clear()
        counters.clear()
        yield
    finally:
        for module, name, value in kept:
            setattr(module, name, value)
        known.clear()
        known.update(kept_known)
        counters.clear()
        counters.update(counted)
        for values, content in lists:
            values.clear()
            values.extend(content)


def is_in_compiled_code() -> bool:
    """True while torch would compile what this thread calls; `torch.compiler.set_stance` refuses to work there too."""
    callback = FRAME_CALLBACK.find()()
    return callback is not None and callback is not False


def clear_cache_memory() -> None:
    """Empty what Inductor's caches hold in memory, if it is loaded; files stay."""
    if CLEAR_CACHES.module in sys.modules and CLEAR_CACHES.exists():
        CLEAR_CACHES.get_loaded()()


def find_config(key: str) -> Any:
    """The torch config module that a key of `Finding.fix` belongs to; Unavailable if this torch lacks the setting."""
    module = find_config_module(key)
    try:
        owner = importlib.import_module(module)
        getattr(owner, key)
    except (ImportError, AttributeError):
        raise Unavailable(f"this torch has no {module}.{key}") from None
    return owner


def replace_backends() -> None:
    """Let torch's own backends run their graphs as they are, for the rest of the process.

    A backend that is a function of the user's stays. The objects and their identity stay too, because guards check it.
    """
    inductor, named = INDUCTOR_BACKEND.find(), NAMED_BACKEND.find()
    call_named = named.__call__

    def run_graph(self: Any, model_: Any, inputs_: Any, **options: Any) -> Any:
        return model_.forward

    def run_named(self: Any, model_: Any, inputs_: Any) -> Any:
        is_torchs = str(getattr(self.compiler_fn, "__module__", "")).partition(".")[0] in ("torch", "functorch")
        return model_.forward if is_torchs else call_named(self, model_, inputs_)

    inductor.__call__ = run_graph
    named.__call__ = run_named
