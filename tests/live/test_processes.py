"""Compiles in other processes: forked by os.fork and by multiprocessing, and spawned ones that join by path."""

import json
import subprocess
import sys
import threading
import time

import pytest

import compilediag as cd
from tests import inside

FORK = """
import json, multiprocessing, os, sys, time
import torch
import compilediag as cd

def compiled(name, sizes):
    def function(x, n):
        return x + len(n)
    function.__code__ = function.__code__.replace(co_name=name)
    f = torch.compile(function, backend="eager")
    return [f(torch.ones(2), "n" * n).tolist() for n in sizes]

def child(name):
    compiled(name, range(3))

session = cd.start()
compiled("parent_before", range(2))
reader_before = len(session.compiles)

bare = os.fork()
if bare == 0:
    compiled("forked", range(3))
    cd.current().flush()  # os._exit loses what is not written yet, as a kill would
    os._exit(7)
code = os.waitstatus_to_exitcode(os.waitpid(bare, 0)[1])
process = multiprocessing.get_context("fork").Process(target=child, args=("pooled",))
process.start()
process.join(300)
idle = os.fork()
if idle == 0:
    os._exit(0)  # forks and compiles nothing
os.waitpid(idle, 0)
compiled("parent_after", range(2))
there = os.path.exists(session.path)

late_in, late_out = os.pipe()
ready_in, ready_out = os.pipe()
late = os.fork()
if late == 0:
    assert cd.current() is not None
    compiled("outlives", range(2))
    cd.current().flush()
    os.write(ready_out, b"x")
    os.read(late_in, 1)  # until the parent has ended its watch
    compiled("outlives_the_watch", range(2))
    cd.stop()
    os._exit(0)
os.read(ready_in, 1)
cd.stop()
os.write(late_out, b"x")
os.waitpid(late, 0)

frame = session.compiles
print(json.dumps({
    "parent": os.getpid(), "bare": bare, "pooled": process.pid, "late": late, "code": code,
    "pool_code": process.exitcode, "there": there, "reader_before": reader_before,
    "still_there": os.path.exists(session.path),
    "functions": {f: sorted({int(p) for p in pids}) for f, pids in frame.groupby("function")["pid"]},
    "counts": frame["function"].value_counts().to_dict(),
    "recompiles": session.recompiles["function"].value_counts().to_dict(),
    "compiling": sorted(frame["pid"]),
    "timed": sorted(session.phases.query("name == 'entire_frame_compile'")["pid"]),
    "lost": session.recompiles.groupby("pid")["lost_s"].sum().gt(0).all().item(),
    "in_flight": session.progress(),
    "integrity": session.data.store.connection.execute("PRAGMA integrity_check").fetchone()[0],
    "ids": session.events["id"].is_unique,
}, default=int))
"""

SPAWN = """
import json, multiprocessing, os, sys
import torch
import compilediag as cd

def child(path):
    with cd.watch(path) as session:
        f = torch.compile(lambda x, n: x + len(n), backend="eager")
        for n in range(3):
            f(torch.ones(2), "n" * n)
        assert session.state == "watching" and len(session.compiles) == 3 + 1

if __name__ == "__main__":
    path = sys.argv[1]
    with cd.watch(path) as session:
        torch.compile(lambda x: x + 1, backend="eager")(torch.ones(2))
        process = multiprocessing.get_context("spawn").Process(target=child, args=(path,))
        session.flush()
        process.start()
        process.join(300)
        stopped = session.meta["stopped_ns"]
    frame = session.compiles
    print(json.dumps({
        "code": process.exitcode, "stopped_meanwhile": stopped, "stopped": session.meta["stopped_ns"] is not None,
        "pids": {str(pid): len(rows) for pid, rows in frame.groupby("pid")}, "child": process.pid,
        "parent": os.getpid(),
        "recompiles": list(map(int, session.recompiles["pid"])), "sources": len(session.sources),
    }))
"""


@pytest.fixture(scope="module")
def forked(program_server, tmp_path_factory):
    return run_and_load(program_server, tmp_path_factory.mktemp("fork") / "fork.py", FORK)


def run_and_load(program_server, script, code, *args):
    """What the script printed last, as JSON."""
    script.write_text(code)
    # CUDA can't be used in a forked process once its parent has used it, and dynamo uses it where it finds it.
    done = program_server.run(script, *args, env={"CUDA_VISIBLE_DEVICES": ""})
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_a_forked_childs_compiles_are_in_the_session_under_its_pid(forked):
    assert forked["functions"]["forked"] == [forked["bare"]]
    assert forked["functions"]["pooled"] == [forked["pooled"]]
    assert (forked["counts"]["forked"], forked["counts"]["pooled"]) == (3, 3)
    assert (forked["recompiles"]["forked"], forked["recompiles"]["pooled"]) == (2, 2)
    assert forked["lost"], "lost seconds are attributed to the right process"
    assert forked["timed"] == forked["compiling"], "each process writes its own phases, once"


def test_the_parent_goes_on_recording_around_its_children(forked):
    assert forked["functions"]["parent_before"] == forked["functions"]["parent_after"] == [forked["parent"]]
    assert (forked["counts"]["parent_before"], forked["counts"]["parent_after"]) == (2, 2)
    assert forked["reader_before"] == 2
    assert (forked["code"], forked["pool_code"]) == (7, 0)


def test_children_leave_the_file_whole_and_where_it_is(forked):
    assert forked["there"] and forked["still_there"]
    assert (forked["integrity"], forked["ids"]) == ("ok", True)
    assert forked["in_flight"] == []


def test_a_child_that_outlives_the_watch_loses_nothing(forked):
    assert forked["functions"]["outlives"] == forked["functions"]["outlives_the_watch"] == [forked["late"]]
    assert (forked["counts"]["outlives"], forked["counts"]["outlives_the_watch"]) == (2, 2)


@pytest.mark.long("a spawned process, which imports torch")
def test_a_spawned_child_joins_by_path_and_its_stop_does_not_end_the_session(program_server, tmp_path):
    found = run_and_load(program_server, tmp_path / "spawn.py", SPAWN, str(tmp_path / "run.cdiag"))
    assert found["code"] == 0
    assert found["pids"] == {str(found["child"]): 3, str(found["parent"]): 1}
    assert found["recompiles"] == [found["child"]] * 2
    assert (found["stopped_meanwhile"], found["stopped"]) == (None, True)
    assert found["sources"] == 2 * (len(inside.list_sources()) + 1), "all of each process, and its writer"
    assert len(cd.load(tmp_path / "run.cdiag").compiles) == 4


RECORDING = """
import sys, torch
import compilediag as cd

with cd.watch(sys.argv[1]) as session:
    torch.compile(lambda x: x + 1, backend="eager")(torch.ones(2))
    session.flush()
    print("recorded", flush=True)
    sys.stdin.readline()
    torch.compile(lambda x: x + 2, backend="eager")(torch.ones(2))
"""


def test_a_session_that_another_process_records_is_followed_until_that_one_ends(forked_commands, tmp_path):
    path, script = tmp_path / "live.cdiag", tmp_path / "record.py"
    script.write_text(RECORDING)
    command = [sys.executable, script, path]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout.readline() == "recorded\n"
        session, sent = cd.load(path), []
        assert session.state == "watching"
        pump = inside.Pump(inside.ViewModel(session.data), sent.append)
        pump.start()
        end = time.monotonic() + 300
        while not sent:
            assert time.monotonic() < end, "nothing was sent while the other process records"
            time.sleep(0.01)
        process.communicate("\n", timeout=600)
        while any(thread.name == "compilediag-dashboard" for thread in threading.enumerate()):
            assert time.monotonic() < end, "the pump does not notice that the other process has ended"
            time.sleep(0.01)
    finally:
        process.kill()
        process.wait()
    patches = [json.loads(message["patch"]) for message in sent if message["type"] == "patch"]
    assert len([row for patch in patches for row in patch.get("rows", {}).get("compiles", [])]) == 2
    states = [patch["meta"]["state"] for patch in patches if "meta" in patch]
    assert (states[0], states[-1], session.state) == ("watching", "loaded", "loaded")
