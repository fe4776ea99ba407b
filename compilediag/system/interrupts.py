"""Interrupts: exceptions that come between two instructions of our code and are not ours, so the program gets them.

Ctrl-C is one. So is what a signal handler of the program raises (a timeout, mostly an `Exception`), what its trace
function raises, and what another thread raises here with `PyThreadState_SetAsyncExc`. All `except` clauses of ours that
run in the program's threads ask this module whether what they caught is ours.
"""

from __future__ import annotations

import contextlib
import dis
import inspect
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from types import CodeType, FrameType, TracebackType
from typing import Any, TypeVar

from ..errors import CompiledAfterWarmup

Result = TypeVar("Result")

_PACKAGE = os.path.dirname(os.path.dirname(__file__)) + os.sep
#: Exceptions that are looked through for one that was raised while another one was handled.
_MOST_CHAINED = 8
#: Where the interpreter runs signal handlers, apart from the end of a call. None of them calls or raises anything.
_CHECKS = ("RESUME", "JUMP_BACKWARD", "POP_JUMP_BACKWARD")
#: Classes of these packages are not the program's own.
_LIBRARIES = {*sys.stdlib_module_names, "compilediag", "torch", "triton", "numpy", "sympy"}


def pass_on(error: BaseException) -> None:
    """Raise the interrupt that `error` is or hides; return if our code, or what it called, has raised it."""
    interrupt = find_interrupt(error)
    if interrupt is not None:
        raise interrupt


def find_interrupt(error: BaseException) -> BaseException | None:
    """The interrupt that `error` is, or that was raised while it was on its way here; None if it is ours.

    What the program has asked us to raise is passed on as an interrupt is.
    """
    if not isinstance(error, Exception) or isinstance(error, CompiledAfterWarmup):
        return error
    found: BaseException | None = error
    try:
        for _ in range(_MOST_CHAINED):
            trace = found.__traceback__ if found is not None else None
            if found is None or trace is None or (found is not error and _is_running(trace)):
                return None  # What was raised before our code was called is the program's own matter.
            if not isinstance(found, Exception) or _is_from_outside(found):
                return found
            found = found.__cause__ or found.__context__
    except (MemoryError, RecursionError):
        pass  # There is no room to look for one.
    return None


@contextlib.contextmanager
def ignore(*kinds: type[Exception]) -> Iterator[None]:
    """As `contextlib.suppress`, but interrupts pass."""
    try:
        yield
    except kinds as error:
        pass_on(error)


def _is_running(trace: TracebackType) -> bool:
    """True if the frame that caught an exception has not returned yet."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and frame is not trace.tb_frame:
        frame = frame.f_back
    return frame is not None


def _is_from_outside(error: Exception) -> bool:
    is_of_the_interpreter = isinstance(error, (RecursionError, MemoryError))
    caller, trace = None, error.__traceback__
    while trace is not None:
        if is_of_the_interpreter:
            # It raises these at any instruction, so that the place says nothing.
            if caller is not None and trace.tb_frame.f_code in _list_handlers():
                return True
        elif caller is not None and _is_called_by_interpreter(trace.tb_frame, caller):
            return True
        caller, trace = trace, trace.tb_next
    return caller is not None and not is_of_the_interpreter and _is_raised_by_none(error, caller)


def _is_called_by_interpreter(frame: FrameType, caller: TracebackType) -> bool:
    """True for a signal handler or a trace function: it gets the frame that it interrupts as an argument."""
    if frame.f_code.co_filename.startswith(_PACKAGE):
        return False
    interrupted, code, found = caller.tb_frame, frame.f_code, frame.f_locals
    arguments = [found.get(name) for name in code.co_varnames[: code.co_argcount]]
    if code.co_flags & inspect.CO_VARARGS:
        more = found.get(code.co_varnames[code.co_argcount + code.co_kwonlyargcount])
        arguments += more if isinstance(more, tuple) else ()
    for one, other in pairwise(arguments):
        if (other is interrupted and type(one) is int) or (one is interrupted and type(other) is str):
            return True
    # It may have deleted its arguments.
    return _is_at_check(caller) or code in _list_handlers()


def _list_handlers() -> list[CodeType]:
    """The code of the program's signal handlers."""
    codes = []
    for number in signal.valid_signals():
        handler: Any = signal.getsignal(number)
        handler = getattr(handler, "func", handler)  # Of a `functools.partial`.
        if callable(handler) and not inspect.isroutine(handler):
            handler = type(handler).__call__
        code = getattr(handler, "__code__", None)
        codes += [code] if isinstance(code, CodeType) else []
    return codes


def _is_raised_by_none(error: Exception, last: TracebackType) -> bool:
    """True if no Python code has raised it, and probably nothing that was called has: another thread, or a handler that
    is written in C. Where a call ends, that can't be known: a class of the program without a message is taken as one.
    """
    if _is_at_check(last):
        return True
    is_programs = type(error).__module__.partition(".")[0] not in _LIBRARIES
    is_at_call = _read_operation(last) in ("PRECALL", "CALL", "CALL_KW", "CALL_FUNCTION_EX")
    return (is_programs or isinstance(error, TimeoutError)) and not error.args and is_at_call


def _is_at_check(trace: TracebackType) -> bool:
    return _read_operation(trace).startswith(_CHECKS)


def _read_operation(trace: TracebackType) -> str:
    code = trace.tb_frame.f_code.co_code
    return dis.opname[code[trace.tb_lasti]] if 0 <= trace.tb_lasti < len(code) else ""


def finish(work: Callable[[], Result]) -> Result:
    """Call `work`, which goes on where it was if it is called again; if an interrupt ends it, call it again.

    The interrupt is raised when the work is done.
    """
    try:
        return work()
    except BaseException as error:
        interrupt = find_interrupt(error)
        if interrupt is None:
            raise
        work()
        raise interrupt from interrupt.__cause__


def finish_start(thread: threading.Thread) -> None:
    """Complete a start that was interrupted, so that the thread can be joined and the interpreter forgets it.

    The interrupt may have come after the thread itself began; then the thread has an identifier soon.
    """
    end = time.monotonic() + 1
    while thread.ident is None and time.monotonic() < end:
        time.sleep(0.01)
    if thread.ident is None:
        thread.start()
    elif not thread.is_alive():
        time.sleep(0.01)
