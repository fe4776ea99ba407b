"""Where torch keeps what it learned of the user's program, and how to set it aside for a while.

Dynamo's cache entries, and its decision to skip a frame or to give up, hang on the code object: in the slot of
its `co_extra` that CPython gave to torch. torch can only throw them away (`torch._dynamo.reset`). Here the slot is
emptied with its content kept, and filled again: a code object whose slot is empty is one that torch never met.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import sys
import types
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ...decode.config_modules import find_config_module
from ..hooks.source import Unavailable
from . import member

_WORD = ctypes.sizeof(ctypes.c_void_p)


@dataclass(frozen=True)
class _Slot:
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
    """What CPython's own function says of a slot."""
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
def extra_slot() -> _Slot:
    """Where code objects hold torch's state; Unavailable unless a code object made for it shows it beyond doubt.

    No layout is assumed: torch is asked to put state on a fresh code object, the one word that changed from NULL is
    `co_extra`, and CPython's own function has to read there what we read and nothing after we emptied it.
    """
    if sys.implementation.name != "cpython":
        raise Unavailable("compile states can be set aside on CPython only")
    frames = member("torch._C._dynamo.eval_frame", "set_code_exec_strategy")
    kinds = member("torch._dynamo.types", "FrameExecStrategy")
    code = compile("0", "<compilediag>", "eval")
    before = _words(code)
    frames.set_code_exec_strategy(code, kinds.FrameExecStrategy(kinds.FrameAction.SKIP, kinds.FrameAction.DEFAULT))
    changed = [n for n, (old, new) in enumerate(zip(before, _words(code), strict=True)) if old == 0 and new != 0]
    indices = [index for index in range(64) if _get_extra(code, index) is not None]
    if len(changed) != 1 or len(indices) != 1:
        raise Unavailable("code objects of this Python don't show where torch's state is")
    slot = _Slot(changed[0] * _WORD, indices[0])
    cell = slot.cell(code)
    if cell is None or cell.value != _get_extra(code, slot.index):
        raise Unavailable("code objects of this Python hold torch's state elsewhere")
    state, cell.value = cell.value, None
    emptied = _get_extra(code, slot.index) is None
    cell.value = state
    if not emptied or _get_extra(code, slot.index) != state:
        raise Unavailable("torch's state of a code object can't be set aside on this Python")
    return slot


def compiled_codes() -> list[types.CodeType]:
    """The code objects that torch has compiled or tried to: those that torch._dynamo.reset() would clear."""
    tracker = member("torch._dynamo.convert_frame", "input_codes").input_codes
    return [code for reference in list(tracker.seen) if (code := reference()) is not None]


@contextlib.contextmanager
def codes_set_aside() -> Iterator[None]:
    """In the block no code object has compiled code; after it each has what it had, and what the block made is gone.

    No other thread may run compiled code meanwhile: what it compiles in the block is dropped at its end.
    """
    slot, frames = extra_slot(), member("torch._C._dynamo.eval_frame", "reset_code")
    tracker = member("torch._dynamo.convert_frame", "input_codes").input_codes
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
            frames.reset_code(code)
        for code, state in kept:
            frames.reset_code(code)
            cell = slot.cell(code)
            if cell is not None:
                cell.value = state
            tracker.add(code)


@contextlib.contextmanager
def learned_set_aside() -> Iterator[None]:
    """In the block torch remembers no size or number of earlier calls, nor what it counted; after it all is back."""
    pgo = member("torch._dynamo.pgo", "reset_code_state")
    names = [n for n in ("_CODE_STATE", "_INIT_CODE_STATE", "_LOGGED_DYNAMIC_ALLOWLIST") if hasattr(pgo, n)]
    kept = {name: getattr(pgo, name) for name in names}
    known = getattr(pgo, "_KNOWN_DYNAMIC_SOURCES", set())
    kept_known = set(known)
    utils = member("torch._dynamo.utils", "counters")
    counted = {group: counts.copy() for group, counts in utils.counters.items()}
    lists = {name: list(found) for name in _LISTS if (found := getattr(utils, name, None)) is not None}
    try:
        pgo.reset_code_state()
        known.clear()
        utils.counters.clear()
        yield
    finally:
        for name, value in kept.items():
            setattr(pgo, name, value)
        known.clear()
        known.update(kept_known)
        utils.counters.clear()
        utils.counters.update(counted)
        for name, values in lists.items():
            found = getattr(utils, name)
            found.clear()
            found.extend(values)


#: What torch appends to with every compile, for its users to read.
_LISTS = ("_compilation_metrics", "graph_break_reasons")


def in_compiled_code() -> bool:
    """True while torch is ready to compile what this thread calls: set_stance refuses to change anything here too."""
    callback = member("torch._C._dynamo.eval_frame", "get_eval_frame_callback").get_eval_frame_callback()
    return callback is not None and callback is not False


def clear_memory_of_caches() -> None:
    """Empty what Inductor's caches hold in memory, where it is loaded; files stay."""
    utils: Any = sys.modules.get("torch._inductor.utils")
    clear = getattr(utils, "clear_caches", None)
    if clear is not None:
        clear()


def config_of(key: str) -> Any:
    """The torch config module that a key of `Finding.fix` belongs to; Unavailable if this torch lacks the setting."""
    module = find_config_module(key)
    try:
        __import__(module)
        owner = sys.modules[module]
        getattr(owner, key)
    except (ImportError, AttributeError):
        raise Unavailable(f"this torch has no {module}.{key}") from None
    return owner
