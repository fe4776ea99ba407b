"""The only place that names torch's private modules and members, and where versions differ.

Every function gives what it is named for or raises `Unavailable` with the name that is missing: so a torch
whose internals moved costs one source, with a reason. Read in the sources of torch 2.11.0 and 2.13.0. What all
sources share is here; what one family of hooks needs is in the module of that family.
"""

from __future__ import annotations

import importlib
import importlib.util
import logging
import os
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

from ..hooks.source import NothingToWatch, Unavailable


def member(module: str, *path: str) -> Any:
    """The class or module that holds the last name of `path`, after checking that the name is there."""
    try:
        owner = importlib.import_module(module)
    except ImportError as error:
        raise Unavailable(f"this torch has no {module} ({error})") from None
    for name in path[:-1]:
        owner = getattr(owner, name, None)
    if owner is None or path[-1] not in vars(owner):
        raise Unavailable(f"this torch has no {module}.{'.'.join(path)}")
    return owner


def class_with(module: str, cls: str, *names: str) -> type:
    """A class, after checking that all of `names` are there."""
    owners = [member(module, cls, name) for name in names]
    return owners[0]


def require_triton() -> None:
    """NothingToWatch without triton. It is not imported for us: its own places are looked for when it is."""
    if importlib.util.find_spec("triton") is None:
        raise NothingToWatch("triton is not installed")


def frames(depth: int) -> Iterator[types.FrameType]:
    """The frames above the function that asks, the innermost first, at most `depth` of them."""
    frame = sys._getframe(1).f_back
    while frame is not None and depth > 0:
        yield frame
        frame, depth = frame.f_back, depth - 1


def event_logger() -> type:
    """The class whose `log_event_start`, `log_event_end` and `log_instant_event` see every timed phase."""
    names = ("log_event_start", "log_event_end", "log_instant_event")
    return class_with("torch._dynamo.utils", "ChromiumEventLogger", *names)


def metrics_module() -> types.ModuleType:
    """The module whose `add_compilation_metrics_to_chromium` is called with each finished CompilationMetrics.

    `record_compilation_metrics`, which calls it, can't be watched itself: each thread's metrics context
    holds a reference to it from the thread's first compile on.
    """
    return member("torch._dynamo.utils", "add_compilation_metrics_to_chromium")


def convert_frame_module() -> types.ModuleType:
    """The module whose `get_and_maybe_log_recompilation_reasons` is called when all entries of a frame failed."""
    return member("torch._dynamo.convert_frame", "get_and_maybe_log_recompilation_reasons")


def graph_break_reason() -> type:
    """The class that is made once a graph break; `__post_init__` sees it."""
    return member("torch._dynamo.output_graph", "GraphCompileReason", "__post_init__")


#: How torch begins the reason of a break at a branch on data; what it tells its log is longer.
JUMP = "generic_jump"


def jump_text(depth: int = 12) -> str | None:
    """What torch's log is told of the break at a branch on data that this thread is at: with explanation and hints."""
    for frame in frames(depth):
        if frame.f_code.co_name == "jump_graph_break":
            error = frame.f_locals.get("exc")
            return None if error is None else str(error)
    return None


def trace_logger() -> logging.Logger:
    """The logger of the structured trace. It feeds any handler, without a variable set."""
    member("torch._logging._internal", "trace_log")
    return logging.getLogger("torch.__trace")


def record_asked_for() -> tuple[str, Callable[[], Any], Callable[[], Any]] | None:
    """Of the record for which torch asks, two frames up, whether anybody listens: its name, and the functions
    that give its metadata and its payload. None where something else asks.
    """
    caller = sys._getframe(2)
    if caller.f_code.co_name != "trace_structured":
        return None
    local = caller.f_locals
    asked = local.get("name"), local.get("metadata_fn"), local.get("payload_fn")
    return asked if isinstance(asked[0], str) and callable(asked[1]) and callable(asked[2]) else None


def argument(args: tuple[Any, ...], kwargs: dict[str, Any], position: int, name: str) -> Any:
    """An argument of a watched call, however it was passed; None if it was not."""
    return args[position] if len(args) > position else kwargs.get(name)


def is_torch_file(file: str) -> bool:
    """True for a file of the installed torch."""
    return file.startswith(os.path.dirname(sys.modules["torch"].__file__) + os.sep)


def current_compile_id() -> str | None:
    """torch's id of the compile that runs in this thread."""
    compile_id = sys.modules["torch._guards"].CompileContext.current_compile_id()
    return None if compile_id is None else str(compile_id)


def cache_entries(entries: Any) -> list[Any]:
    """The earlier entries in look-up order: torch 2.13 passes a list, 2.11 the first of a linked chain."""
    if isinstance(entries, (list, tuple)):
        return list(entries)
    chain = []
    while entries is not None:
        chain.append(entries)
        entries = entries.next
    return chain


def source_name(source: Any) -> str:
    """The name of what a guard or a symbol is about: a property since torch 2.10, before it a method."""
    name = source.name
    return str(name() if callable(name) else name)


def unaliased_sources(guard_manager: Any) -> list[str] | None:
    """The expressions of the tensors that an entry needs to be different objects; None if it does not tell.

    torch 2.15 keeps the sources as objects, those before as texts.
    """
    sources = getattr(guard_manager, "no_tensor_aliasing_sources", None)
    return sources and [source if isinstance(source, str) else source_name(source) for source in sources]


def compiling_code(depth: int = 12) -> tuple[types.CodeType, Any] | None:
    """The code object that dynamo compiles in this thread and its backend, from the frame of `_compile`.

    The start of a compile is announced without the function's name; a few frames up it is a local variable.
    """
    for frame in frames(depth):
        if frame.f_code.co_name == "_compile" and frame.f_globals.get("__name__") == "torch._dynamo.convert_frame":
            local = frame.f_locals
            code = local.get("code")
            return (code, local.get("compiler_fn")) if isinstance(code, types.CodeType) else None
    return None


def backend_name(compiler_fn: Callable[..., Any] | None) -> str | None:
    """The name of a backend, under the wrappers that torch puts around it."""
    for _ in range(8):
        inner = getattr(compiler_fn, "_torchdynamo_orig_backend", None) or getattr(
            compiler_fn, "_torchdynamo_orig_callable", None
        )
        if inner is None:
            break
        compiler_fn = inner
    name = getattr(compiler_fn, "compiler_name", None) or getattr(compiler_fn, "__name__", None)
    return name if isinstance(name, str) else None
