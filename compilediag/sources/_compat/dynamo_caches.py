"""Dynamo's own caches: compiled code in memory, its packages on disk, its profile. Read in torch 2.11.0 and 2.13.0."""

from __future__ import annotations

import os
import sys
import types
from typing import Any

from . import frames, member

EVAL_FRAME = "torch._C._dynamo.eval_frame"
PGO = "torch._dynamo.pgo"
CONVERT = "torch._dynamo.convert_frame"
#: What stands for the guards of an entry whose object is gone.
DELETED = "DeletedGuardManagerWrapper"


def conversion_module() -> types.ModuleType:
    """The module whose `increment_frame()` is called first when no entry of a frame's code fits.

    What converts the frame is not itself watched: torch counts the frames above it to leave its own out of logs.
    """
    member(EVAL_FRAME, "_debug_get_cache_entry_list")
    return member(CONVERT, "increment_frame")


def conversion_result() -> type:
    """The class that is made of what came of a conversion; it holds the new entry if there is one."""
    return member("torch._dynamo.types", "ConvertFrameReturn", "__init__")


def limit_module() -> types.ModuleType:
    """The module whose `exceeds_recompile_limit(size, compile_id)` gives whether a limit is reached, and which."""
    return member(CONVERT, "exceeds_recompile_limit")


def check_function() -> type:
    """The class whose `invalidate(obj_str)` drops an entry as an object is gone that its guards are about."""
    return member("torch._dynamo.guards", "CheckFunctionManager", "invalidate")


def reset_modules() -> list[types.ModuleType]:
    """The modules whose `reset_code(code)` drops all entries of a code object."""
    return [member("torch._dynamo", "reset_code"), member("torch._dynamo.eval_frame", "reset_code")]


def package_store() -> type:
    """The class whose `write(entry, path)` writes a package of compiled code to disk."""
    return member("torch._dynamo.package", "DiskDynamoStore", "write")


def package_base() -> type:
    """The class whose `load_cache_entry(key)` reads a package; it raises if that fails."""
    return member("torch._dynamo.package", "DynamoStore", "load_cache_entry")


def package_cache() -> type:
    """The class whose `load(fn)` looks for a package of a function; it gives None if there is none."""
    return member("torch._dynamo.package", "DiskDynamoCache", "load")


def pgo_module() -> types.ModuleType:
    """The module that reads the profile of an earlier run (`get_local_code_state`) and writes that of this one."""
    member(PGO, "code_state_path")
    member(PGO, "get_local_code_state")
    return member(PGO, "write_local_impl")


def converted_code(depth: int = 8) -> Any:
    """The code object of the frame whose conversion has just begun in this thread; None if it is not found."""
    for frame in frames(depth):
        if frame.f_code.co_name == "__call__" and frame.f_globals.get("__name__") == CONVERT:
            return getattr(frame.f_locals.get("frame"), "f_code", None)
    return None


def entries_of(code: Any) -> list[Any]:
    """The compiled entries of a code object."""
    return list(sys.modules[EVAL_FRAME]._debug_get_cache_entry_list(code))


def code_columns(code: Any) -> dict[str, Any]:
    return {"function": code.co_name, "file": code.co_filename, "line": code.co_firstlineno}


def entry_columns(entry: Any) -> dict[str, Any]:
    """compile_id, function, file and line of an entry."""
    compile_id = getattr(entry, "compile_id", None)
    return {"compile_id": None if compile_id is None else str(compile_id), **code_columns(entry.code)}


def live_entry(check: Any) -> dict[str, Any] | None:
    """The entry that guards belong to, as columns; None if it was dropped before, or is not yet in a cache."""
    guards = getattr(check, "guard_manager", None)
    entry = None if type(guards).__name__ == DELETED else getattr(guards, "cache_entry", None)
    return None if entry is None else entry_columns(entry)


def is_dropped(check: Any) -> bool:
    return type(getattr(check, "guard_manager", None)).__name__ == DELETED


def interpreter_ends(depth: int = 12) -> bool:
    """True while weakref calls, as the interpreter ends, the finalizers of all objects that are still there."""
    return any(f.f_code.co_name == "_exitfunc" and f.f_globals.get("__name__") == "weakref" for f in frames(depth))


def profile_bytes(key: str) -> int | None:
    """Bytes of the profile on disk; None if there is no such file, -1 if torch keeps none on disk."""
    path = sys.modules[PGO].code_state_path(key)
    if path is None:
        return -1
    return os.path.getsize(path) if os.path.exists(path) else None
