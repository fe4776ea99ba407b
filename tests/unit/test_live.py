"""`compilediag live` without torch: processes that compile, wait, end or are killed, and how the command stops."""

import io
import os
import pty
import signal
import subprocess
import sys
import time
from dataclasses import replace

import pytest
from rich.console import Console

import compilediag as cd
from compilediag.cli.live_screen import draw_job
from compilediag.views.live_status import JobReader, LiveLines, answer_hung_or_compiling
from tests.inside import Recorder, main
from tests.unit.session_builder import META, SECOND, Feed, put
from tests.unit.tables_builder import FORWARD, compiled, sizes

#: The time at which the tests look at a job: the seconds that are shown do not depend on how long a test takes.
NOW_NS = time.time_ns()
#: How long to wait for what has to come, however busy the machine is.
MOST_S = 300


class Running:
    """A compile in flight for `seconds`."""

    def __init__(self, seconds, **frame):
        self.frame = {**FORWARD, "trigger": "dynamo", **frame, "started_ns": NOW_NS - int(seconds * SECOND)}

    def state(self):
        return {**self.frame, "phases": ["entire_frame_compile", "inductor_compile"]}


@pytest.fixture
def job(tmp_path):
    """`job(n)`: the recorders of n ranks, as if other living processes had them."""
    processes, recorders = [], []

    def begin(count):
        for rank in range(count):
            processes.append(subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]))
            meta = {**META, "pid": processes[-1].pid, "created_ns": NOW_NS - 50 * SECOND}
            recorders.append(Recorder(tmp_path / f"rank-{rank}.cdiag", meta, rank=lambda rank=rank: rank).begin())
            recorders[-1].feeds = [Feed()]
            recorders[-1].process = processes[-1]
        return recorders

    yield begin
    for recorder in recorders:
        recorder.close()
    for process in processes:
        process.kill()
        process.wait()


def kill(recorder):
    recorder.process.kill()
    recorder.process.wait()


def read(folder, *recorders):
    for recorder in recorders:
        recorder.flush()
    data = cd.load(folder).data
    return read_now(JobReader(data, "ranks/"), data)


def read_now(reader, data):
    return replace(reader.read(data.files.values()), now_ns=NOW_NS)


def draw(job, width=100, most=20):
    console = Console(file=io.StringIO(), width=width, height=40)
    console.print(draw_job(job, most, width))
    return console.file.getvalue()


def test_a_compile_in_flight_is_named_with_the_time_that_it_took_before(job, tmp_path):
    first, second = job(2)
    put(first, compiled(trigger="dynamo", duration_s=12.0), *sizes("4", "6", "9", user_file="/a.py", user_line=3))
    first.progress[1] = Running(42)
    state = read(tmp_path, first, second)
    text = draw(state)
    assert "rank 0" in text and "compiling forward" in text and "Inductor" in text and "0:42" in text
    assert "no compile in flight" in text and "x.shape[0] was 6, then 9" in text
    assert "plan so far: 1 change removes 2 of 2 recompiles" in text and "dynamic_sources" in text
    answer = answer_hung_or_compiling(state)
    assert (
        answer.startswith("Compiling: rank 0; forward (model.py:30) for 42.0 s") and "(the last time: 12.0 s)" in answer
    )
    assert answer.endswith("1 other process may wait for it.")


def test_a_job_that_stands_still_without_a_compile_does_not_compile(job, tmp_path):
    state = read(tmp_path, *job(2))
    answer = answer_hung_or_compiling(state)
    assert answer.startswith("Not compiling: no compile in flight for 50.0 s")
    assert answer.endswith("if the job makes no progress, the reason is not a compile.")
    lines = LiveLines()
    assert [line[9:16] for line in lines.describe(state)] == ["rank 0:", "rank 1:"]
    assert [line[9:] for line in lines.describe(state)] == [answer]
    assert lines.describe(state) == [], "again only after twice the time"


def test_a_killed_process_is_named_with_what_it_compiled(job, tmp_path):
    first, second = job(2)
    second.progress[1] = Running(3)
    second.flush()
    kill(second)
    state = read(tmp_path, first)
    assert "killed while it compiled forward" in draw(state)
    assert answer_hung_or_compiling(state).startswith("rank 1 was killed. Not compiling")


def test_lines_are_printed_once_per_change(job, tmp_path):
    (recorder,) = job(1)
    recorder.flush()
    data = cd.load(tmp_path).data
    reader, lines = JobReader(data, "ranks/"), LiveLines()

    def look():
        recorder.flush()
        data._due = 0.0
        return [line[line.index("rank") :] for line in lines.describe(read_now(reader, data))]

    assert look()[0] == f"rank 0: process {recorder.process.pid} is recorded"
    recorder.progress[1] = Running(1)
    assert look() == ["rank 0: compiling forward (model.py:30)"]
    assert look() == []
    recorder.progress.clear()
    put(recorder, compiled(trigger="dynamo"))
    assert look() == ["rank 0: compiled forward (model.py:30) in 2.0 s"]
    kill(recorder)
    assert look() == ["rank 0: killed"]


def test_a_screen_obeys_nothing_in_the_names_of_a_job(job, tmp_path):
    (recorder,) = job(1)
    name = "[bold]x[/no]\x1b[2J\x9b31m\u202e"
    recorder.progress[1] = Running(1, function=name)
    put(recorder, compiled(function=name, trigger="dynamo"), *(replace(row, function=name) for row in sizes("4", "6")))
    text = draw(read(tmp_path, recorder))
    assert "[bold]x[/no]" in text and all(line.isprintable() for line in text.splitlines())


@pytest.mark.parametrize("width", [60, 100])
def test_nothing_is_wider_than_the_terminal_and_many_ranks_fit(job, tmp_path, width):
    recorders = job(6)
    recorders[4].progress[1] = Running(42)
    kill(recorders[5])
    text = draw(read(tmp_path, *recorders), width, most=4)
    lines = text.splitlines()
    assert max(map(len, lines)) <= width and len(lines) < 25
    assert "rank 4" in text and "rank 5" in text and "... and 2 more processes" in text


def test_a_job_that_has_ended_is_summed_up(job, tmp_path, capsys):
    (recorder,) = job(1)
    put(recorder, compiled(duration_s=3.0), *sizes("4", "6", "9"))
    recorder.close()
    assert main(["live", str(tmp_path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    texts = [line.partition(" rank 0: ")[2] for line in lines]
    assert f"process {recorder.process.pid} is recorded" in texts and "ended" in texts
    assert "1 change removes 2 of 2 recompiles" in "\n".join(lines)
    assert lines[-1].startswith("compilediag: 1 compile, 2 recompiles, 3.0 s compiling; 1 change saves ")


def test_a_job_that_has_ended_is_printed_with_the_times_of_its_events(job, tmp_path, capsys):
    """The compile ends, and the size changes, while the job runs; one event is of another day."""
    (recorder,) = job(1)
    now_ns = time.time_ns()
    changed = [replace(row, time_ns=now_ns + 2 * 10**9) for row in sizes("4", "6")]
    put(recorder, compiled(duration_s=1.0, time_ns=now_ns), *changed, compiled(duration_s=2.0, time_ns=86_400 * 10**9))
    time.sleep(0.01)
    recorder.close()
    assert main(["live", str(tmp_path)]) == 0
    lines = capsys.readouterr().out.splitlines()

    def find_time(text):
        return next(line.partition(" rank 0: ")[0] for line in lines if text in line)

    def show(seconds, form="%H:%M:%S"):
        return time.strftime(form, time.localtime(seconds))

    assert find_time("in 1.0 s").endswith(show(now_ns / 1e9 + 1))
    assert find_time("recompiles forward").endswith(show(now_ns / 1e9 + 2))
    assert find_time("in 2.0 s") == show(86_402, "%Y-%m-%d %H:%M:%S") and lines[0].startswith(find_time("in 2.0 s"))


def test_without_rich_a_terminal_gets_one_line(python_without, tmp_path):
    code = "sys.stdout.isatty = lambda: True\nfrom compilediag.cli import main\nsys.exit(main(['live', 'x.cdiag']))"
    done = python_without({"rich"}, code)
    assert done.returncode == 2
    assert done.stderr == ("compilediag: the live screen needs rich: pip install 'compilediag[live]', or use --plain\n")


def test_an_interrupt_on_a_terminal_leaves_the_job_alone(job, tmp_path):
    (recorder,) = job(1)
    recorder.progress[1] = Running(42)
    recorder.flush()
    terminal, child = pty.openpty()
    command = [sys.executable, "-m", "compilediag", "live", tmp_path / "rank-0.cdiag"]
    with subprocess.Popen(command, stdout=child, stderr=subprocess.PIPE, text=True) as live:
        os.close(child)
        shown, end = b"", time.monotonic() + MOST_S
        while b"forward" not in shown and time.monotonic() < end:
            shown += os.read(terminal, 4096)
        live.send_signal(signal.SIGINT)
        errors = live.stderr.read()
        assert live.wait(timeout=MOST_S) == 130
    while b"\x1b[?25h" not in shown:
        shown += os.read(terminal, 4096)  # The cursor is visible again.
    os.close(terminal)
    assert errors == "compilediag: stopped following; the job continues\n"
    assert b"\x1b[?25l" in shown and recorder.process.poll() is None
