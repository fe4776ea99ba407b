"""Stack frames as the decoders take them, with the text of the call that runs in each, and the function's parameters.

A hook keeps code objects and offsets. All else is read in the writer's thread, from the code object and the file's
text; what can't be read is None.
"""

from __future__ import annotations

import ast
import contextlib
import dis
import functools
import inspect
import itertools
import linecache
import os
import types
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from ...decode.call_stacks import CallStacks, Frame, is_torch_file
from ...formatting import parse_resumed
from ...system.interrupts import pass_on
from ..compile_context import Made
from ..hooks.torch_names import caller_frames

T = TypeVar("T")


class UserLine(NamedTuple):
    """A line of the user's code."""

    file: str | None = None
    line: int | None = None


#: Lines of a call whose text is kept; a statement that is longer is a block.
MAX_LINES = 100
#: Functions whose code is remembered.
MAX_FUNCTIONS = 10_000
_LOOPS = (b"for ", b"async for ")
#: What Dynamo calls its own variables in the code after a graph break.
_MADE_UP = ("___", "__nested_")


def cache_by_code(limit: int) -> Callable[[Callable[..., T]], Callable[..., T]]:
    """Cache a function of a code object, and of numbers, by the identity of the code, for at most `limit` results.

    Code that Dynamo made can have a dict among its constants, and then has no hash.
    """

    def decorate(function: Callable[..., T]) -> Callable[..., T]:
        known: dict[tuple[int, ...], tuple[types.CodeType, T]] = {}

        @functools.wraps(function)
        def look_up(code: types.CodeType, *numbers: int) -> T:
            key = (id(code), *numbers)
            found = known.get(key)
            if found is None:
                if len(known) >= limit:
                    known.clear()
                # The code is kept too, so that no other code gets its id.
                found = known[key] = code, function(code, *numbers)
            return found[1]

        return look_up

    return decorate


@cache_by_code(10_000)
def read_parameters(code: types.CodeType) -> tuple[str, ...]:
    """The parameters in the order of the signature: `x`, `*args`, `k=` (keyword only), `**kwargs`."""
    names = iter(code.co_varnames)
    found = [name for name in itertools.islice(names, code.co_argcount) if not name.startswith(_MADE_UP)]
    keyword_only = [f"{name}=" for name in itertools.islice(names, code.co_kwonlyargcount)]
    star = [f"*{next(names)}"] if code.co_flags & inspect.CO_VARARGS else []
    double_star = [f"**{next(names)}"] if code.co_flags & inspect.CO_VARKEYWORDS else []
    return (*found, *star, *keyword_only, *double_star)


def read_call(code: types.CodeType, at: int) -> str | None:
    """The text of the expression that runs at an offset; None if Dynamo made the instruction or there is no text."""
    try:
        position = next(itertools.islice(code.co_positions(), at // 2, None), None) if at >= 0 else None
        if position is None:
            return None
        line, end_line, column, end_column = position
        if line is None or end_line is None or column is None or end_column is None:
            return None
        lines = linecache.getlines(code.co_filename)
        if not 0 < line <= end_line <= len(lines):
            return None
        # Columns count UTF-8 bytes.
        part = [text.encode() for text in lines[line - 1 : end_line]]
        if part[0][column:].startswith(_LOOPS):
            return _find_iterated([part[0][column:], *part[1:]])
        if len(part) > MAX_LINES:
            return None
        part[-1] = part[-1][:end_column]
        part[0] = part[0][column:]
        return b"".join(part).decode().strip() or None
    except Exception as error:  # A changed file, or text that is no UTF-8: the frame has no call then.
        pass_on(error)
        return None


def _find_iterated(lines: list[bytes]) -> str | None:
    """What a loop goes over: the position of its step is that of the whole loop."""
    text = ""
    for line in itertools.islice(lines, MAX_LINES):
        text += line.decode()
        for body in ("", " pass"):
            with contextlib.suppress(SyntaxError):
                loop = ast.parse(text.rstrip() + body).body[0]
                return ast.get_source_segment(text, loop.iter) if isinstance(loop, (ast.For, ast.AsyncFor)) else None
    return None


class OriginalCodes:
    """The functions that Dynamo compiled, as the user wrote them.

    After a graph break the code that runs is Dynamo's own: it does not show what the function assigned before.
    """

    def __init__(self) -> None:
        self._codes: dict[tuple[str, str], dict[int, types.CodeType]] = {}

    def add(self, code: types.CodeType) -> None:
        """Remember a function that is compiled; the code after a graph break is no such function."""
        if not parse_resumed(code.co_name):
            if len(self._codes) >= MAX_FUNCTIONS:
                self._codes.clear()
            self._codes.setdefault((code.co_filename, code.co_name), {})[code.co_firstlineno] = code

    def find(self, code: types.CodeType) -> types.CodeType | None:
        """The user's own code for code that Dynamo made; None for code that is the user's, or not known."""
        resumed = parse_resumed(code.co_name)
        known = self._codes.get((code.co_filename, resumed[0] if resumed else code.co_name), {})
        if not resumed:
            own = known.get(code.co_firstlineno)
            return None if own is code else own
        first = max((line for line in known if line <= resumed[1]), default=None)
        return None if first is None else known[first]


#: A place in a function: an offset, or a line. Assignments are a place and a name, loops their first and last place.
Stores = list[tuple[int, str]]
Loops = list[tuple[int, int]]


@cache_by_code(2_000)
def _list_stores(code: types.CodeType) -> tuple[tuple[Stores, Loops], tuple[Stores, Loops]]:
    """The assignments to local variables and the loops, by their offsets and by their lines."""
    by_offset: tuple[Stores, Loops] = ([], [])
    by_line: tuple[Stores, Loops] = ([], [])
    lines: dict[int, int] = {}
    line = code.co_firstlineno
    for instruction in dis.get_instructions(code):
        name, value = instruction.opname, instruction.argval
        position = instruction.positions
        line = lines[instruction.offset] = (position and position.lineno) or line
        if name in ("STORE_FAST_STORE_FAST", "STORE_FAST_LOAD_FAST") and isinstance(value, tuple):
            stored = value[: 2 if name == "STORE_FAST_STORE_FAST" else 1]
        elif name.startswith(("STORE_FAST", "STORE_DEREF", "DELETE_FAST", "DELETE_DEREF")):
            stored = (value,)
        else:
            stored = ()
        by_offset[0].extend((instruction.offset, str(text)) for text in stored)
        by_line[0].extend((line, str(text)) for text in stored)
        if "JUMP_BACKWARD" in name:
            begin = int(value)
            inside = [number for offset, number in lines.items() if begin <= offset <= instruction.offset]
            by_offset[1].append((begin, instruction.offset))
            by_line[1].append((min(inside, default=line), max(inside, default=line)))
    return by_offset, by_line


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
_PACKAGE = os.path.dirname(_OWN[:-1]) + os.sep


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
    return [_read_frame(code, at) for code, at in zip(*around, strict=True) if not code.co_filename.startswith(_OWN)]


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
    """The parameters that were assigned again before a place; of code that Dynamo made, those that the user's function
    assigned before the same line.
    """
    if not parameters:
        return ()
    own = _ORIGINALS.find(code)
    (stores, loops), here = (_list_stores(code)[0], at) if own is None else (_list_stores(own)[1], line)
    around = [(first, last) for first, last in loops if first <= here <= last]
    assigned = {n for place, n in stores if place < here or any(first <= place <= last for first, last in around)}
    return tuple(plain for name in parameters if (plain := name.strip("*=")) in assigned)


def find_user_line(depth: int = 20) -> UserLine:
    """The innermost line of this thread that is neither torch's nor compilediag's."""
    for frame in caller_frames(depth):
        file = frame.f_code.co_filename
        if not is_torch_file(file) and not file.startswith(_PACKAGE):
            return UserLine(file, frame.f_lineno)
    return UserLine()
