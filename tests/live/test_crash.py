"""A process that is killed while it compiles: what was written is in the file, in order, and the file is whole.

How old the newest event is that a kill loses is measured by benchmarks/functions.py.
"""

import os
import re
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing

import pytest

import compilediag as cd
from tests.program_server import COMMANDS

SCRIPT = """
import sys, time
import torch
import compilediag as cd

cd.start(sys.argv[1])
print("watching", flush=True)
for round in range(10_000):
    def function(x, n):
        return x + len(n)
    function.__code__ = function.__code__.replace(co_name=f"round_{round}")
    f = torch.compile(function, backend="eager")
    for n in range(4):
        f(torch.ones(2), "n" * n)
        print(f"done round_{round} {n} {time.time_ns()}", flush=True)
"""
#: How long to wait for what has to come, however busy the machine is.
MOST_S = 300


@pytest.fixture(scope="module")
def killed(program_server, tmp_path_factory):
    """(path, lines printed, sizes seen from here meanwhile) of a run that was killed."""
    folder = tmp_path_factory.mktemp("crash")
    path = folder / "run.cdiag"
    (folder / "script.py").write_text(SCRIPT)
    command = [sys.executable, folder / "script.py", path]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, COMMANDS: "1"}) as process:
        assert process.stdout.readline() == "watching\n"
        seen = []
        end = time.monotonic() + MOST_S
        session = cd.load(path)
        while len(set(seen)) < 4 or seen[-1] < 20:
            seen.append(len(session.compiles))
            time.sleep(0.2)
            assert time.monotonic() < end
        process.send_signal(signal.SIGKILL)
        lines = process.stdout.read().splitlines()
    return path, lines, seen


def test_what_was_seen_meanwhile_is_in_the_file_in_order_and_the_file_is_whole(killed):
    path, lines, seen = killed
    assert seen == sorted(seen) and len(set(seen)) >= 4
    ended = [re.fullmatch(r"done (round_\d+) (\d) \d+", line) for line in lines]
    done = [(m[1], int(m[2])) for m in ended if m]
    session = cd.load(path)
    frame = session.compiles
    found = [(f, int(i.split("/")[1])) for f, i in zip(frame["function"], frame["compile_id"], strict=True)]
    assert len(found) >= seen[-1] >= 20
    # The last compile may have ended in the file before its line was printed.
    assert found[: len(done)] == done[: len(found)] and len(found) <= len(done) + 1
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    assert session.meta["stopped_ns"] is None
    assert "compiles" in session.summary() and session.findings()
    assert len(cd.load(session.save(path.with_name("copy.cdiag"))).compiles) == len(found)


def test_a_killed_runs_file_is_replaced_by_the_next_run(killed):
    path, *_ = killed
    copy = cd.load(path).save(path.with_name("again.cdiag"))
    with cd.watch(copy) as session:
        pass
    assert len(session.compiles) == 0 and session.meta["pid"] == os.getpid()


def test_a_script_that_forgets_to_stop_loses_nothing(tmp_path, program_server):
    code = SCRIPT.replace("range(10_000)", "range(2)")
    done = program_server.run("-c", code, tmp_path / "run.cdiag")
    assert done.returncode == 0, done.stderr
    assert [p.name for p in tmp_path.iterdir()] == ["run.cdiag"]
    session = cd.load(tmp_path / "run.cdiag")
    assert len(session.compiles) == done.stdout.count("done") == 8
    assert session.meta["stopped_ns"] is not None
