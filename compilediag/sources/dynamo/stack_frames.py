"""Stack frames as the decoders take them. The writer's thread makes them: to read a line, a file is opened."""

from __future__ import annotations

import linecache
import os
import types
from typing import Any

from ...decode.call_stacks import CallStacks, Frame, is_torch_file
from ..hooks.caller_frames import caller_frames
from ..hooks.sink import Made
from . import torch_api
from .running_calls import OriginalCodes, cache_by_code, find_assigned, find_assigned_before, read_call, read_parameters

#: Frames that are read of one stack: the innermost ones.
MAX_DEPTH = 1_000
#: Stacks that are remembered, for a function that is compiled again from the same lines.
MAX_PLACES = 2_000
#: Code objects of frames, and the offset in each: to find the line takes longer than everything else here. Two lists,
#: not one of pairs, each of which would count towards Python's next garbage collection.
Places = tuple[list[types.CodeType], list[int]]
_ORIGINALS = OriginalCodes()
#: Frames of our own hooks are left out.
_OWN = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


def is_own_file(file: str) -> bool:
    """True for a file of our own hooks."""
    return file.startswith(_OWN)


def callers_of_compile() -> Places:
    """The frames around the call that Dynamo compiles, outermost first. torch's own dynamo_start lists the same, but
    leaves out the innermost callers.
    """
    return frames_outside(None, torch_api.CONVERT)


def frames_outside(function: str | None, module: str | None) -> Places:
    """This thread's frames around the outermost one of that function, or of that module."""
    codes: list[types.CodeType] = []
    offsets: list[int] = []
    for frame in caller_frames(MAX_DEPTH):
        code = frame.f_code
        if code.co_name == function or (module is not None and frame.f_globals.get("__name__") == module):
            codes.clear()
            offsets.clear()
        else:
            codes.append(code)
            offsets.append(frame.f_lasti)
    return codes[::-1], offsets[::-1]


def add_call_stack(
    stacks: CallStacks, frame: dict[str, Any], own: types.CodeType, around: Places, time_ns: int
) -> Made:
    """Add the key of a compile's call stack to what is known of its function; returns the stack frames that are new."""
    place = (id(own), tuple(map(id, around[0])), tuple(around[1]))
    known = stacks.places.get(place)
    if known is not None:
        frame["stack"] = known[0]
        return ()
    _ORIGINALS.add(own)
    parameters = read_parameters(own)
    assigned = _find_assigned(own, -1, own.co_firstlineno, parameters)
    code = linecache.getline(own.co_filename, own.co_firstlineno).strip() or None
    compiled = Frame(own.co_filename, own.co_firstlineno, own.co_name, code, None, parameters, assigned)
    path = [*read_frames(around), compiled]
    frame["stack"], fresh = stacks.add(path, time_ns)
    if len(stacks.places) >= MAX_PLACES:
        stacks.places.clear()
    # The code is kept too, so that no other code gets its id.
    stacks.places[place] = frame["stack"], own, around[0]
    return fresh


def read_frames(around: Places) -> list[Frame]:
    return [_read_frame(code, at) for code, at in zip(*around, strict=True) if not is_own_file(code.co_filename)]


def read_logged_frames(around: Places) -> list[Frame]:
    """The frames as torch's logs have them, so that a stack of a shape record has the same key in both."""
    return [Frame(frame.file, frame.line, frame.function, frame.code) for frame in read_frames(around)]


@cache_by_code(10_000)
def _read_frame(code: types.CodeType, at: int) -> Frame:
    file = code.co_filename
    line = next((line for begin, end, line in code.co_lines() if begin <= at < end), None)
    if line is None or is_torch_file(file):
        return Frame(file, line, code.co_name)
    text = linecache.getline(file, line).strip() or None
    parameters = read_parameters(code)
    assigned = _find_assigned(code, at, line, parameters)
    return Frame(file, line, code.co_name, text, read_call(code, at), parameters, assigned)


def _find_assigned(code: types.CodeType, at: int, line: int, parameters: tuple[str, ...]) -> tuple[str, ...]:
    """The parameters that were assigned again; of code that Dynamo made, those that the user's function assigned."""
    if not parameters:
        return ()
    own = _ORIGINALS.find(code)
    return find_assigned(code, at, parameters) if own is None else find_assigned_before(own, line, parameters)
