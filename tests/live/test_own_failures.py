"""What fails in compilediag is shown, and the program goes on: own functions raise, while a watch records and ends.

Here a part of those that run between hooks, in the writer's thread and around the file raises; `make soak` breaks each
function that runs in a watch, with Inductor.
"""

import ast
import inspect
import logging
import sys
import textwrap
import threading
import zlib

import pytest
import torch

import compilediag as cd
from benchmarks.soak import own_failures
from tests.inside import list_hooks
from tests.live import programs

#: Where functions are broken: what a source, the recorder and the file do around each event, and to begin and end.
SUBJECTS = ("sources.hooks", "sources.dynamo", "recording", "storage")
#: Of so many functions one is broken, unless all are.
STRIDE = 6
#: `stop()` itself: nothing of ours is around it, so that the program gets what it raises.
OF_STOP = ("recording.active_recording.",)


def run_sizes():
    """Compile and recompile; the results as lists."""
    torch._dynamo.reset()
    return [result.tolist() for result in programs.sizes()]


def watch_once(detail="full"):
    with cd.watch(detail=detail):
        run_sizes()


def choose_functions():
    """(name, function) of what runs in a watch, of these subjects."""
    watch_once()
    called = own_failures.find_called(watch_once)
    for name in list(sys.modules):
        if name.startswith("compilediag."):
            found = own_failures.list_functions(vars(sys.modules[name]), name)
            for function in found:
                path = f"{function.__module__.removeprefix('compilediag.')}.{function.__qualname__}"
                left_out = path.startswith(OF_STOP) or path.endswith((*own_failures.ENTRIES, ".__del__"))
                if function.__code__ in called and path.startswith(SUBJECTS) and not left_out:
                    yield path, function


def call_in_thread(function):
    """Call it in a thread of its own: what it raised, or that it has not returned."""
    raised = [TimeoutError(f"{function.__name__} has not returned")]

    def call():
        try:
            function()
            raised.clear()
        except BaseException as error:
            raised[:] = [error]

    thread = threading.Thread(target=call, daemon=True)
    thread.start()
    thread.join(300)
    return list(map(repr, raised))


def break_while_it_records(function, expected):
    """Let a function raise from after `start()` until after `stop()`: what went wrong, the session, and if a reader
    got the exception. `expected`: the results, and the number of compiles.
    """
    results, compiles = expected
    session = cd.start()
    code = function.__code__
    try:
        function.__code__ = own_failures.make_raising_code(function)
        wrong = ["other results"] * (run_sizes() != results)
        got = call_in_thread(session.flush)
        wrong += [text for text in got if "OwnFailure" not in text]
        wrong += call_in_thread(cd.stop)
        wrong += ["other results after the end"] * (run_sizes() != results)
    finally:
        function.__code__ = code
    wrong += ["a watch goes on"] * (cd.stop() is not None) + [f"left: {hook}" for hook in list_hooks()]
    wrong += [thread.name for thread in threading.enumerate() if "compilediag" in thread.name]
    wrong += ["a hook that could not be removed records"] * (len(session.compiles) > compiles)
    return wrong, session, bool(got)


@pytest.mark.swallows
@pytest.mark.parametrize("stride", [STRIDE, pytest.param(1, marks=pytest.mark.long("breaks 400 functions"))])
def test_the_program_goes_on_nothing_is_left_and_what_failed_is_shown(stride, caplog):
    harm, hidden = {}, []
    with cd.watch() as session:
        results = run_sizes()
    expected = results, len(session.compiles)
    chosen = sorted(choose_functions(), key=lambda found: zlib.crc32(found[0].encode()))[::stride]
    for name, function in chosen:
        own_failures.OwnFailure.times = 0
        caplog.clear()
        with caplog.at_level(logging.WARNING, "compilediag"):
            wrong, session, was_raised = break_while_it_records(function, expected)
        if wrong:
            harm[name] = wrong
        shown = any("own failure" in (row["reason"] or "") or row["status"] == "failed" for row in session.status())
        if own_failures.OwnFailure.times and not (shown or was_raised or "own failure" in caplog.text):
            hidden.append(name)
    assert harm == {}
    assert [name for name in hidden if not f"compilediag.{name}".startswith(own_failures.OF_SOURCES)] == []
    assert len(chosen) >= 300 // stride - 10
    watch_once()


@pytest.mark.parametrize("name", own_failures.ENTRIES)
def test_what_nothing_of_ours_is_around_does_all_of_it_in_one_try(name):
    """What Python or the program calls itself can't be shielded from outside, so it is not broken above."""
    watch_once()
    module, owner, method = name.rsplit(".", 2)
    found = next(value for key, value in sys.modules.items() if key.endswith(module) and "compilediag" in key)
    function = ast.parse(textwrap.dedent(inspect.getsource(vars(vars(found)[owner])[method]))).body[0]
    shield, *after = [part for part in function.body if not is_docstring(part)]
    assert isinstance(shield, ast.Try) and not shield.finalbody and not shield.orelse
    at_the_limit, others = shield.handlers
    assert (ast.unparse(at_the_limit.type), ast.unparse(others.type)) == ("RecursionError", "BaseException")
    written_in_c = {"self.escaped.append", "self._source.escaped.append", "self._fail", "len"}
    assert list_calls([*at_the_limit.body, *after]) <= written_in_c
    assert list_calls(others.body) <= {"self.handle_escaped", "self._source.handle_escaped", "self._handle"}


def list_calls(parts):
    return {ast.unparse(node.func) for part in parts for node in ast.walk(part) if isinstance(node, ast.Call)}


def is_docstring(part):
    return isinstance(part, ast.Expr) and isinstance(part.value, ast.Constant)
