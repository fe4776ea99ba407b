"""A program that breaks the session's file of a watch in every way at every moment, and prints what became of it.

Its arguments are an empty folder, and one on a small disk if there is one.
"""

import contextlib
import itertools
import json
import logging
import os
import resource
import shutil
import sys
import threading
import traceback
from pathlib import Path

import torch

import compilediag as cd
from compilediag.errors import CompilediagError
from tests import inside
from tests.inside import sources

FOLDER = Path(sys.argv[1])
SMALL_DISK = Path(sys.argv[2]) if len(sys.argv) > 2 else None
ERROR = "of the program"


NUMBERS = itertools.count(1)


def compile_new():
    added = next(NUMBERS)
    torch._dynamo.reset()
    assert torch.compile(lambda x: x + added, backend="eager")(torch.zeros(1)).item() == added


# What happens to the file. Each returns a function that repairs it, if it can be repaired.


def replace(file):
    other = file.with_name("other.cdiag")
    shutil.copy(EARLIER, other)
    os.replace(other, file)


def overwrite(file):
    file.write_bytes(EARLIER.read_bytes())


def fill_disk(file):
    filler = file.with_name("filler")
    with contextlib.suppress(OSError), open(filler, "wb", buffering=0) as opened:
        while opened.write(b"x" * 512):
            pass
    return lambda: filler.unlink()


def limit_size(file):
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (512, before[1]))
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, before)


def remove_and_fork(file):
    file.unlink()
    fork()


def fork():
    child = os.fork()
    if not child:
        status = 1
        try:
            compile_new()
            if running := cd.current():
                running.flush()
            status = 0
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0, "the child failed"


CAUSES = {
    "removed": lambda file: file.unlink(),
    "replaced": replace,
    "overwritten": overwrite,
    "emptied": lambda file: os.truncate(file, 0),
    "moved": lambda file: os.rename(file, file.with_name("moved.cdiag")),
    "-wal emptied": lambda file: os.truncate(f"{file}-wal", 0),
    "-wal cut": lambda file: os.truncate(f"{file}-wal", 3 * os.stat(f"{file}-wal").st_size // 4),
    "folder removed": lambda file: shutil.rmtree(file.parent),
    "file size limit": limit_size,
    "removed, then fork": remove_and_fork,
    **({"disk full": fill_disk} if SMALL_DISK else {}),
}


# The moments. Each function returns the session and how many compiles it has to have at least.


class Breaking:
    """Breaks the file once, and mends what can be mended at the end."""

    def __init__(self, cause):
        self.cause, self.mend = cause, None

    def __call__(self, file):
        self.mend = CAUSES[self.cause](file)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.mend:
            self.mend()


def at_start(file, breaking):
    """While `start()` runs: a disk that is full is full before, a file is broken as soon as it is there."""
    attach = sources.attach

    def attach_later(*args):
        breaking(file)
        return attach(*args)

    if breaking.cause in ("disk full", "file size limit"):
        breaking(file)
    else:
        sources.attach = attach_later
    try:
        session = cd.start(file)
    finally:
        sources.attach = attach
    compile_new()
    session.flush()
    assert cd.stop() is session
    return session, 0


def while_recording(file, breaking):
    session = cd.start(file)
    compile_new()
    session.flush()
    breaking(file)
    for _ in range(3):
        compile_new()
        session.compiles, session.sources, session.progress()
    fork()
    compile_new()
    cd.stop()
    return session, 1


def at_stop(file, breaking):
    session = cd.start(file)
    compile_new()
    session.flush()
    compile_new()
    breaking(file)
    assert cd.stop() is session and cd.stop() is None
    return session, 1


def at_exit(file, breaking):
    with cd.watch(file) as session:
        compile_new()
        session.flush()
        compile_new()
        breaking(file)
    return session, 1


def with_an_exception(file, breaking):
    try:
        with cd.watch(file) as session:
            compile_new()
            session.flush()
            breaking(file)
            compile_new()
            raise ValueError(ERROR)
    except ValueError as error:
        assert error.args == (ERROR,) and error.__context__ is None
    return session, 1


MOMENTS = {
    "start": at_start,
    "recording": while_recording,
    "stop": at_stop,
    "__exit__": at_exit,
    "exception": with_an_exception,
}


class Warned(logging.Handler):
    def __init__(self):
        super().__init__(logging.WARNING)
        self.texts = []

    def emit(self, record):
        self.texts.append(record.getMessage())


def run(cause, moment):
    """What became of the session, as a dict."""
    root = SMALL_DISK if cause == "disk full" else FOLDER
    folder = root / f"{cause}, {moment}".replace(" ", "-")
    folder.mkdir()
    file = folder / "run.cdiag"
    warned = Warned()
    logging.getLogger("compilediag").addHandler(warned)
    before, first = set(threading.enumerate()), next(NUMBERS)
    try:
        with Breaking(cause) as breaking:
            session, least = MOMENTS[moment](file, breaking)
            found = describe(session)
        found["raised"] = None
    except BaseException as error:
        found, least = {"raised": "".join(traceback.format_exception(error))}, 0
        inside.end_recordings()
    logging.getLogger("compilediag").removeHandler(warned)
    left = [str(hook) for hook in inside.list_hooks()] + [t.name for t in set(threading.enumerate()) - before]
    return {
        **found,
        "least": least,
        "made": next(NUMBERS) - first - 1,
        "warnings": warned.texts,
        "left": left,
        "later": describe_file(file),
    }


def describe(session):
    states = {row["name"]: (row["status"], row["reason_code"], row["reason"]) for row in session.status()}
    return {
        "state": session.state,
        "writer": states.get("writer"),
        "compiles": len(session.compiles),
        "active": [name for name, state in states.items() if state[0] == "active"],
        "summary": session.summary(),
        "html": len(session._repr_html_()),
    }


def describe_file(file):
    """What a later process reads from the file: the number of compiles, or why none."""
    moved = file.with_name("moved.cdiag")
    try:
        return len(cd.load(moved if moved.exists() else file).compiles)
    except CompilediagError as error:
        return str(error)


if __name__ == "__main__":
    logging.getLogger("compilediag").propagate = False
    EARLIER = FOLDER / "earlier.cdiag"
    with cd.watch(EARLIER):
        pass
    print(json.dumps({f"{cause}, {moment}": run(cause, moment) for cause in CAUSES for moment in MOMENTS}))
