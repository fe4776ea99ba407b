"""A program whose session file another process locks at every moment, and prints what became of the session.

Its argument is an empty folder. The lock is held until the process ends, so whatever waits for it never returns.
"""

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import torch

import compilediag as cd
from compilediag.storage import session_writer, store

FOLDER = Path(sys.argv[1])
session_writer.LOCK_S, session_writer.END_S, store.LOCK_S = 0.1, 0.5, 0.5
HOLD = """
import sqlite3, sys
db = sqlite3.connect(sys.argv[1], isolation_level=None)
for statement in sys.argv[2].split(";"):
    db.execute(statement).fetchall()
print("held", flush=True)
sys.stdin.read()
"""
#: What another process does with the file.
LOCKS = {"write": "BEGIN IMMEDIATE", "exclusive": "BEGIN EXCLUSIVE", "read": "BEGIN; SELECT * FROM meta"}


def lock(file, how):
    """The process that holds the lock, until its stdin is closed."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    holder = subprocess.Popen([sys.executable, "-c", HOLD, file, LOCKS[how]], **pipes)
    assert holder.stdout.readline() == b"held\n"
    return holder


def compile_new(number):
    torch._dynamo.reset()
    assert torch.compile(lambda x: x + number, backend="eager")(torch.zeros(1)).item() == number


def while_recording(file, how):
    session = cd.start(file)
    compile_new(1)
    holder = lock(file, how)
    for number in range(2, 5):
        compile_new(number)
        session.flush()
    cd.stop()
    return session, holder


def at_fork(file, how):
    session = cd.start(file)
    compile_new(1)
    holder = lock(file, how)
    compile_new(2)
    session.flush()
    child = os.fork()
    if not child:
        compile_new(100)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    compile_new(3)
    compile_new(4)
    cd.stop()
    return session, holder


def at_start(file, how):
    """An earlier session of the same path is locked; it is replaced."""
    with cd.watch(file):
        compile_new(1)
    holder = lock(file, how)
    with cd.watch(file) as session:
        for number in range(1, 5):
            compile_new(number)
    return session, holder


def unlocked_in_time(file, how):
    session = cd.start(file)
    holder = lock(file, how)
    for number in range(1, 5):
        compile_new(number)
        session.flush()
    holder.stdin.close()
    holder.wait()
    cd.stop()
    return session, holder


MOMENTS = {"recording": while_recording, "fork": at_fork, "start": at_start, "unlocked": unlocked_in_time}


def run(moment, how):
    file = FOLDER / f"{moment}-{how}.cdiag"
    session, holder = MOMENTS[moment](file, how)
    states = {row["name"]: row for row in session.status()}
    found = {
        "state": session.state,
        "compiles": int((session.compiles["pid"] == os.getpid()).sum()),
        "findings": len(session.findings()),
        "writer": [states["writer"]["status"], states["writer"]["reason_code"]],
        "is_active": states["compiles"]["status"] == "active",
        "dropped": sum(row["dropped"] for row in states.values()),
        "names_reason": "writer: " in session.summary(),
        "saved": len(cd.load(session.save(FOLDER / "saved.cdiag")).events) == len(session.events),
        "threads": [thread.name for thread in threading.enumerate() if "writer" in thread.name],
    }
    return found, holder


if __name__ == "__main__":
    results, holders = {}, []
    for moment in MOMENTS:
        for how in LOCKS:
            results[f"{moment}, {how}"], holder = run(moment, how)
            holders.append(holder)
    # One watch is still open when the process ends.
    cd.start(FOLDER / "open.cdiag")
    compile_new(1)
    cd.current().flush()
    holders.append(lock(FOLDER / "open.cdiag", "exclusive"))
    compile_new(2)
    print(json.dumps(results), flush=True)
