"""torch's frames between a call and the function that it runs: most of them pass their arguments through."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from ..call_stacks import Frame, find_torch_path
from ..guards.path import Step
from .call_text import MappingFailed

_EVAL_FRAME = re.compile(r"[/\\]torch[/\\]_dynamo[/\\]eval_frame\.py$")
#: Functions of `eval_frame.py` that begin a compiled call. Until torch 2.9, `_fn` also ended one (`disable`).
_COMPILED, _ANY_CALL = ("compile_wrapper", "__call__"), "_fn"

#: File and function -> the object that it calls, as an attribute of the one that was called; None for the same object.
_OBJECTS = {
    ("nn/modules/module.py", "__call__"): None,
    ("nn/modules/module.py", "_wrapped_call_impl"): None,
    ("nn/modules/module.py", "_call_impl"): None,
    ("nn/modules/module.py", "inner"): None,
    ("nn/modules/module.py", "_slow_forward"): None,
    ("_dynamo/eval_frame.py", "__call__"): None,
    ("nn/parallel/distributed.py", "forward"): None,
    ("nn/parallel/distributed.py", "_run_ddp_forward"): "module",
    ("distributed/fsdp/fully_sharded_data_parallel.py", "forward"): "_fsdp_wrapped_module",
    ("distributed/algorithms/_checkpoint/checkpoint_wrapper.py", "forward"): "_checkpoint_wrapped_module",
}
_CONTEXTS = "utils/_contextlib.py"
#: Functions of that file that are no wrapper: they return one, or run a generator.
_OWN_OF_CONTEXTS = {"__call__", "__new__", "clone", "context_decorator", "_wrap_generator", "generator_context"}
#: Functions that call a function with the arguments that they got.
_WRAPPERS = {
    ("_dynamo/eval_frame.py", "compile_wrapper"),
    ("_dynamo/eval_frame.py", "_fn"),
    ("_dynamo/eval_frame.py", "callback_fn"),
    ("_dynamo/eval_frame.py", "fail_callback"),
    ("_dynamo/external_utils.py", "inner"),
    ("_dynamo/external_utils.py", "nonrecursive_disable_wrapper"),
    ("_dynamo/decorators.py", "wrapper"),
    ("_dynamo/decorators.py", "inner"),
    ("_compile.py", "inner"),
    ("autograd/grad_mode.py", "decorate_context"),
    ("amp/autocast_mode.py", "decorate_autocast"),
    ("amp/autocast_mode.py", "decorate_fwd"),
    ("optim/optimizer.py", "wrapper"),
    ("optim/optimizer.py", "_use_grad"),
    ("optim/lr_scheduler.py", "wrapper"),
    ("distributed/elastic/multiprocessing/errors/__init__.py", "wrapper"),
}


class Passed(NamedTuple):
    """What torch's frames do to a call: is an object called, and which attribute of it is the object of the method?"""

    is_object: bool = False
    members: tuple[Step, ...] = ()


def find_compiled_call(frames: list[Frame]) -> int | None:
    """The place of the outermost frame in which torch begins a compiled call; None if a log has left it out."""
    places = [at for at, frame in enumerate(frames) if frame.file and _EVAL_FRAME.search(frame.file)]
    certain = [at for at in places if frames[at].function in _COMPILED]
    possible = [at for at in places if frames[at].function == _ANY_CALL]
    return min(certain or possible, default=None)


def _is_context_wrapper(path: str, function: str) -> bool:
    """True for the wrapper of a context manager as a decorator, which torch 2.15 names after the context manager."""
    return path == _CONTEXTS and function not in _OWN_OF_CONTEXTS


def follow_torch_frames(frames: Iterable[Frame]) -> Passed:
    """What the frames between a call and its function do. MappingFailed if they make arguments of their own."""
    is_object, members = False, list[Step]()
    for frame in frames:
        path = find_torch_path(frame.file or "")
        place = (path or "", frame.function or "")
        if place in _OBJECTS:
            is_object = True
            if (attribute := _OBJECTS[place]) is not None:
                members.append(Step("attr", attribute))
        elif place not in _WRAPPERS and not _is_context_wrapper(*place):
            where = f"torch/{path}:{frame.line}" if path else f"{frame.file}:{frame.line}"
            raise MappingFailed(f"{place[1] or 'code'} ({where}) makes the arguments")
    return Passed(is_object, tuple(members))
