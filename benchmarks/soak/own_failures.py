"""Every own function that runs in a watch raises in turn while Inductor compiles.

    python -m benchmarks.soak.own_failures [--part=0/2] [--only=NAME,NAME]

`--part` takes one of several parts of the functions. With `--only`, only functions whose name contains one of these are
broken.
"""

from __future__ import annotations

import collections
import inspect
import logging
import sys
import threading
import types
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import compilediag as cd
from benchmarks.soak.workload import is_quick, is_time_left, report, run_inductor
from compilediag import sources
from compilediag.recording import recorder

#: The parts that run inside the user's program and in the writer's thread.
PARTS = tuple(
    f"compilediag.{part}."
    for part in ("sources", "decode", "recording.recorder", "events", "storage", "system.source_files")
)
#: What must not happen, as the table calls it.
KINDS = ("results changed", "raised in the program", "hooks left behind", "not visible")
#: The functions that make and write the rows of `sources`, which cannot report their own failure there.
OF_SOURCES = (
    "compilediag.events.SourceStatus.",
    "compilediag.recording.recorder.SourceStates.",
    "compilediag.recording.recorder._outline",
    "compilediag.recording.recorder.Recorder._read_status",
)


#: Functions that Python or the program calls directly, so nothing of compilediag can catch what they raise. All that
#: they do is in one `try`. `__del__` is not broken either: Python prints what is raised there, and continues.
ENTRIES = (
    "structured_trace._Listeners.__bool__",
    "patches.WhenImported.find_spec",
    "hooks.source.Callback.__call__",
)


class OwnFailure(RuntimeError):
    """What a function raises here; it counts how often."""

    times = 0

    def __init__(self, *args: object):
        super().__init__("own failure")
        OwnFailure.times += 1


def find_functions() -> dict[types.CodeType, tuple[str, types.FunctionType]]:
    """Code -> name and function, of all functions and methods of the package that run in a watch."""
    found: dict[types.CodeType, tuple[str, types.FunctionType]] = {}
    for name, module in list(sys.modules.items()):
        if f"{name}.".startswith(PARTS):
            for function in list_functions(vars(module), name):
                found[function.__code__] = f"{function.__module__}.{function.__qualname__}", function
    return found


def list_functions(names: Any, module: str) -> Iterator[types.FunctionType]:
    for found in list(names.values()):
        value = getattr(found, "__func__", getattr(found, "fget", found))
        value = inspect.unwrap(value) if callable(value) else value
        if getattr(value, "__module__", None) != module:
            continue
        if isinstance(value, type):
            yield from list_functions(vars(value), module)
        elif isinstance(value, types.FunctionType):
            yield value


def find_called(work: Callable[[], object]) -> set[types.CodeType]:
    """The code that runs while `work` runs, in this thread and in all that begin meanwhile."""
    called: set[types.CodeType] = set()

    def profile(frame: types.FrameType, event: str, argument: object) -> None:
        if event == "call":
            called.add(frame.f_code)

    threading.setprofile(profile)
    sys.setprofile(profile)
    try:
        work()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return called


def make_raising_code(function: types.FunctionType) -> types.CodeType:
    """Code that raises OwnFailure, with as many variables of enclosing functions as the function's own has."""
    names = [f"enclosed_{number}" for number in range(len(function.__code__.co_freevars))]
    setup = "".join(f"    {name} = None\n" for name in names) or "    pass\n"
    uses = "".join(f"        {name}\n" for name in names)
    text = f"def outer():\n{setup}    def broken(*args, **kwargs):\n        raise 'failure'\n{uses}    return broken"
    namespace: dict[str, Any] = {}
    exec(text, namespace)
    code: types.CodeType = namespace["outer"]().__code__
    constants = tuple(OwnFailure if constant == "failure" else constant for constant in code.co_consts)
    return code.replace(co_consts=constants, co_name=function.__name__)


def choose() -> list[tuple[str, types.FunctionType, str]]:
    """(name, function, detail) of the functions to break: with full detail, those that only lean calls with lean."""
    details: dict[types.CodeType, str] = {}
    for detail in ("full", "lean"):
        watch_once(detail)
        for code in find_called(lambda detail=detail: watch_once(detail)):  # type: ignore[misc]
            details.setdefault(code, detail)
    functions = find_functions()
    chosen = sorted((*functions[code], detail) for code, detail in details.items() if code in functions)
    options = [option for option in sys.argv[1:] if option.startswith("--part=")]
    part, parts = map(int, options[0][len("--part=") :].split("/")) if options else (0, 1)
    only = [option[len("--only=") :] for option in sys.argv[1:] if option.startswith("--only=")]
    wanted = only[0].split(",") if only else [""]
    chosen = [
        row for row in chosen if any(name in row[0] for name in wanted) and not row[0].endswith((*ENTRIES, ".__del__"))
    ]
    return [row for row in chosen if zlib.crc32(row[0].encode()) % parts == part][:: 20 if is_quick() else 1]


def run_broken(function: types.FunctionType, detail: str) -> tuple[list[bytes], list[dict[str, Any]]]:
    """Run the workload while a function raises from after `start()` until `stop()` has returned."""
    OwnFailure.times = Warnings.times = 0
    code = function.__code__
    session = cd.start(detail=detail)
    try:
        function.__code__ = make_raising_code(function)
        results = run_inductor()
        cd.stop()
    finally:
        function.__code__ = code
        cd.stop()
    return results, session.status()


def find_harm(function: types.FunctionType, detail: str, expected: list[bytes]) -> dict[str, str]:
    """What went wrong while a function raised: kind -> details."""
    try:
        results, status = run_broken(function, detail)
    except Exception as error:
        return {"raised in the program": f": {type(error).__name__}: {error}"}
    harm = {}
    if results != expected:
        harm["results changed"] = ""
    if sources.list_hooks():
        harm["hooks left behind"] = f": {sources.list_hooks()}"
    seen = any("own failure" in (row["reason"] or "") or row["status"] == "failed" for row in status)
    if OwnFailure.times and not seen:
        warned = ", a warning alone" if Warnings.times else ""
        harm["not visible"] = f", {OwnFailure.times} times{warned}"
    return harm


class Warnings(logging.Handler):
    """Counts the warnings, which do not replace `sources`: the table shows failures that only a warning reported."""

    times = 0

    def emit(self, record: logging.LogRecord) -> None:
        Warnings.times += 1


def break_each(expected: list[bytes]) -> None:
    chosen, reached, tried = choose(), 0, 0
    harm = collections.defaultdict(list)
    for name, function, detail in chosen:
        if not is_time_left():
            break
        found = find_harm(function, detail, expected)
        for kind, what in found.items():
            harm[kind].append(f"{name}{what} ({detail})")
        tried += 1
        reached += bool(OwnFailure.times)
        print(f"  {name} ({detail}): raised {OwnFailure.times} times, {found}", file=sys.stderr, flush=True)
    unseen = [what for what in harm["not visible"] if what.startswith(OF_SOURCES)]
    harm["not visible"] = [what for what in harm["not visible"] if what not in unseen]
    note = "" if tried == len(chosen) else f"{len(chosen) - tried} not tried, for lack of time"
    for kind in KINDS:
        notes = [note, f"{len(unseen)} that write `sources` itself are not" if kind == "not visible" else ""]
        report(f"own functions raise in turn: {kind}", reached, harm[kind], "; ".join(filter(None, notes)))


def watch_once(detail: str) -> None:
    with cd.watch(detail=detail):
        run_inductor()


def main() -> None:
    recorder.INTERVAL_S = 0.1  # The writer works while the workload runs,
    sys.setswitchinterval(0.001)  # and does not wait long for its turn.
    expected = run_inductor()
    assert run_inductor() == expected
    logging.getLogger("compilediag").addHandler(Warnings(logging.WARNING))
    logging.getLogger("compilediag").propagate = False
    break_each(expected)


if __name__ == "__main__":
    main()
