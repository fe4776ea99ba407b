"""`compilediag live` beside a real torchrun job of two ranks (gloo on the CPU): it compiles, ends, or is killed."""

import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import compilediag as cd
from tests import inside

PROGRAM = Path(__file__).with_name("live_ranks.py")
#: How long to wait for what has to come, however busy the machine is.
MOST_S = 300


class FollowedJob:
    """The job, and the lines that `compilediag live` has printed about it so far."""

    def __init__(self, folder):
        self.ranks, self.go = folder / "ranks", folder / "go"
        command = [sys.executable, "-m", "compilediag", "live", f"{self.ranks}/", "--wait"]
        self.live = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.waiting = self.live.stderr.readline()  # The job begins when this was printed.
        launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
        arguments = [*launcher, PROGRAM, f"{self.ranks}/", self.go]
        self.job = subprocess.Popen([sys.executable, *arguments], stderr=subprocess.DEVNULL)
        self.lines = []
        self._reader = threading.Thread(
            target=lambda: self.lines.extend(map(str.rstrip, self.live.stdout)), daemon=True
        )
        self._reader.start()

    def wait_for(self, pattern):
        """The first line that matches, without its time."""
        end = time.monotonic() + MOST_S
        while time.monotonic() < end:
            for line in list(self.lines):
                if found := re.match(rf"\d\d:\d\d:\d\d ({pattern})", line):
                    return found[1]
            time.sleep(0.1)
        raise AssertionError(f"{pattern} is not in {self.lines}")

    def wait_until_rank_0_waits(self):
        """The session, once it has all compiles before `late`, which rank 1 compiles now."""
        session, end = cd.load(self.ranks), time.monotonic() + MOST_S
        while len(session.compiles) < 6 or [state["function"] for state in session.progress()] != ["late"]:
            assert time.monotonic() < end
            time.sleep(0.1)
        return session

    def finish(self):
        """The exit code of `compilediag live`, and what it printed to stderr."""
        code = self.live.wait(timeout=MOST_S)
        self._reader.join(timeout=MOST_S)
        return code, self.live.stderr.read()

    def close(self):
        """End both; the launcher is asked to, because it then ends its ranks."""
        self.go.touch()
        for process in (self.live, self.job):
            process.terminate()
            process.wait(timeout=MOST_S)


@pytest.fixture
def job(tmp_path, forked_commands):
    started = FollowedJob(tmp_path)
    yield started
    started.close()


def test_live_follows_two_ranks_to_the_end_of_the_job(job):
    line = job.wait_for(r"rank 1: compiling late .*")
    assert line == "rank 1: compiling late (live_ranks.py:29)"
    session = job.wait_until_rank_0_waits()
    assert session.state == "watching"
    model = inside.ViewModel(session.data)
    snapshot = model.snapshot()
    assert snapshot["ranks"]["count"] == 2 and snapshot["now"][0]["function"] == "late"
    before = snapshot["totals"]["compiles"]
    job.go.touch()
    assert job.job.wait(timeout=MOST_S) == 0
    code, errors = job.finish()
    assert code == 0 and job.waiting.startswith("compilediag: waiting: ") and errors == ""
    text = "\n".join(job.lines)
    for rank in (0, 1):
        assert re.search(rf"rank {rank}: process \d+ is recorded", text)
        for change in ("was 4, then 6", "was 6, then 9"):
            assert f"rank {rank}: recompiles step (live_ranks.py:24): x.shape[0] {change}" in text
        assert f"rank {rank}: ended" in text
    assert text.index("rank 1: compiling late") < text.index("rank 1: compiled late (live_ranks.py:29) in ")
    assert "rank 0: compiling late" not in text
    assert "plan: 1 change removes " in text
    closing = job.lines[-1]
    assert closing.startswith("compilediag: 7 compiles, 4 recompiles, ") and closing.endswith(
        f"compilediag plan {job.ranks}/"
    )
    patch, end = {}, time.monotonic() + MOST_S
    while patch.get("meta", {}).get("state") != "loaded":
        patch |= model.patch() or {}
        assert time.monotonic() < end
    assert patch["now"] == []
    assert patch["totals"]["compiles"] == before + 1 == 7


@pytest.mark.long("a job of ranks; the other test has one too")
def test_live_names_a_rank_that_was_killed_and_what_it_compiled(job):
    pid = int(re.search(r"\d+", job.wait_for(r"rank 1: process \d+ is recorded").partition("process")[2])[0])
    job.wait_for(r"rank 1: compiling late .*")
    job.wait_until_rank_0_waits()
    os.kill(pid, signal.SIGKILL)
    assert job.job.wait(timeout=MOST_S) != 0
    code, _ = job.finish()
    text = "\n".join(job.lines)
    assert code == 1
    assert "rank 1: killed while it compiled late (live_ranks.py:29)" in text
    # Rank 0 raises because its peer is gone, or the launcher ends it before.
    assert re.search(r"\d rank 0: (killed|ended)$", text, re.M)
    ending = "rank 1 killed while it compiled late (live_ranks.py:29)"
    assert re.match(rf"compilediag: (rank 0 killed, )?{re.escape(ending)}; 6 compiles, 4 recompiles, ", job.lines[-1])
    session = cd.load(job.ranks)
    assert session.state == "loaded" and session.progress() == [] and len(session.recompiles) == 4
