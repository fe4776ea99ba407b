"""The command as users start it: a process of its own, the real compiler."""

import multiprocessing
import os
import re
import shutil
import signal
import subprocess
import sys
import textwrap

import pytest

import compilediag
from tests.inside import read_page

#: A script that recompiles twice on the cheapest backend: sizes 2, 3, 4 without dynamic shapes.
COMPILES = """
import torch

@torch.compile(backend="eager", dynamic=False)
def double(x):
    return x * 2

for size in (2, 3, 4):
    double(torch.ones(size))
"""


@pytest.fixture
def run(program_server, tmp_path):
    """`compilediag run ...` in an empty folder."""
    folder = tmp_path / "cwd"
    folder.mkdir()
    return lambda *args: program_server.run("-m", "compilediag", "run", *args, cwd=folder)


def test_a_run_is_recorded_reported_and_summed_up(run, script, tmp_path, monkeypatch):
    done = run("--save", "run.cdiag", "--report", tmp_path / "run.html", script(COMPILES + "print('the script')"))
    assert (done.returncode, done.stdout) == (0, "the script\n"), done.stderr
    assert {name.removesuffix("-wal").removesuffix("-shm") for name in os.listdir(tmp_path / "cwd")} == {"run.cdiag"}
    session = compilediag.load(shutil.copy(tmp_path / "cwd" / "run.cdiag", tmp_path / "alone.cdiag"))
    assert session.recompiles[["function", "expected", "actual"]].values.tolist() == [
        ["double", "2", "3"],
        ["double", "3", "4"],
    ]
    assert "failed" not in set(session.sources["status"])
    monkeypatch.chdir(tmp_path)  # The script is read there, as by the run.
    plan, totals = session.summary().split("\n\n")[:2]
    assert f"{plan}\n\n{totals}\n" in done.stderr and "More: compilediag plan run.cdiag" in done.stderr
    last = done.stderr.splitlines()[-1]
    assert re.match("compilediag: 3 compiles, 2 recompiles, .* compiling; 1 change saves ", last)
    assert last.endswith(": compilediag plan run.cdiag")
    page = read_page(tmp_path / "run.html")
    assert "double" in page and "<title>compilediag: train.py</title>" in page


def test_the_script_sees_what_python_would_show_it(run, python, script, tmp_path):
    path = script("""
        import os, sys, json, pickle
        class Local: pass
        module = sys.modules["__main__"]
        pickle.loads(pickle.dumps(Local()))
        names = sorted(n for n in vars(module) if n.startswith("__") and n != "__annotations__")
        print(json.dumps([sys.argv, sys.path[0], __name__, __file__, __package__, str(__spec__), names]))
    """)
    arguments = ["--report", "x", "-h", "--", "-m", "a b"]
    under_watch = run("--quiet", path, *arguments)
    plain = python(path, *arguments, cwd=tmp_path / "cwd")
    assert plain.returncode == 0, plain.stderr
    assert (under_watch.stdout, under_watch.stderr) == (plain.stdout, plain.stderr)


def test_a_module_runs_like_python_m(run, python, script, tmp_path):
    code = "import sys; print(sys.argv, sys.path[0], __package__, __spec__.name, __file__)"
    script(code, "cwd/pkg/__main__.py")
    under_watch = run("--quiet", "-m", "pkg", "--flag")
    plain = python("-m", "pkg", "--flag", cwd=tmp_path / "cwd")
    assert plain.returncode == 0, plain.stderr
    assert (under_watch.stdout, under_watch.stderr) == (plain.stdout, plain.stderr)


@pytest.mark.parametrize(
    "ending",
    [
        "raise SystemExit(7)",
        "raise SystemExit('some words')",
        "raise SystemExit",
        "raise ValueError('mine')",
        "def f():\n    raise KeyboardInterrupt\nf()",
        "this is no python",
        "import sys\nsys.excepthook = lambda *a: print('hooked', a[0].__name__)\nraise ValueError",
        "from compilediag.errors import CompilediagError\nraise CompilediagError('not ours to catch')",
        "import threading, time\nthreading.Thread(target=lambda: time.sleep(0.2) or print('late')).start()",
        "import atexit, os\natexit.register(os._exit, 5)",
    ],
)
def test_endings_are_the_scripts_own(run, python, script, tmp_path, ending):
    path = script(ending)
    under_watch = run("--quiet", path)
    plain = python(path, cwd=tmp_path / "cwd")
    assert under_watch.returncode == plain.returncode
    assert (under_watch.stdout, under_watch.stderr) == (plain.stdout, plain.stderr)


def test_what_was_recorded_before_a_failure_is_reported(run, script, tmp_path):
    done = run("--save", "run.cdiag", "--report", "run.html", script(COMPILES + "raise ValueError('mine')"))
    assert done.returncode == 1
    assert done.stderr.index("ValueError: mine") < done.stderr.index("double")
    assert done.stderr.splitlines()[-1].startswith(
        "compilediag: the script raised ValueError; 3 compiles, 2 recompiles"
    )
    assert len(compilediag.load(tmp_path / "cwd" / "run.cdiag").recompiles) == 2
    assert "double" in read_page(tmp_path / "cwd" / "run.html")


def test_the_last_line_names_the_session_also_without_a_plan(run, script):
    nothing = script("print('the script')")
    for options, ending in (([], "compilediag last"), (["--save", "my run.cdiag"], "'my run.cdiag'")):
        done = run(*options, nothing)
        assert (done.returncode, done.stdout) == (0, "the script\n"), done.stderr
        assert done.stderr.splitlines()[-1] == f"compilediag: nothing was compiled; session: {ending}"
        assert "replays of CUDA graphs" not in done.stderr, "that they are not counted is no gap"


def test_calls_and_replays_are_counted_if_it_is_asked_for(run, script, tmp_path):
    assert run("--save", tmp_path / "run.cdiag", "--calls", "--replays", script("pass")).returncode == 0
    session = compilediag.load(tmp_path / "run.cdiag")
    assert set(session.meta["asked_for"]) == {"calls", "guard_checks", "replays"}


def test_a_script_may_change_its_folder(run, script, tmp_path):
    done = run("--report", "run.html", "--save", "run.cdiag", script("import os; os.mkdir('other'); os.chdir('other')"))
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "cwd" / "run.html").exists() and os.listdir(tmp_path / "cwd" / "other") == []


def test_compiles_in_a_thread_that_outlives_the_script_are_seen(run, script, tmp_path):
    work = textwrap.indent(COMPILES, "    ")
    path = script(f"import threading\ndef work():\n{work}\nthreading.Thread(target=work).start()")
    done = run("--save", "run.cdiag", path)
    assert done.returncode == 0, done.stderr
    assert len(compilediag.load(tmp_path / "cwd" / "run.cdiag").recompiles) == 2


def test_the_session_of_a_process_whose_threads_compile_to_its_end_is_whole(run, script, tmp_path):
    path = script("""
        import threading, torch

        started = threading.Semaphore(0)

        def compile_one(number):
            names = {"torch": torch}
            exec(f"def run(x): return (x.sin() * {number}).relu() + torch.rand(3)", names)
            torch.compile(names["run"], backend="eager")(torch.ones(3))

        def compile_on(number):
            while True:
                number += 2
                compile_one(number)
                started.release()

        compile_one(0)
        for number in range(2):
            threading.Thread(target=compile_on, args=(number,), daemon=True).start()
        for _ in range(6):
            started.acquire()
    """)
    done = run("--quiet", "--save", "run.cdiag", path)
    # While the interpreter is finalized, torch's C++ can end the process, with or without a watch.
    assert done.returncode in (0, -signal.SIGABRT, -signal.SIGSEGV), done.stderr
    session = compilediag.load(tmp_path / "cwd" / "run.cdiag")
    assert session.data.store.meta()["stopped_ns"] is not None
    assert len(session.compiles) >= 7 and session.sources["dropped"].sum() == 0


ASKS_AT_THE_END = """
    session.data.call_when_ended(lambda: print(hasattr(torch.ops.prims, "device_put")))
    """


def test_a_watch_ends_while_torch_still_has_its_operators(run, script, program_server):
    path = script("import compilediag, torch\nsession = compilediag.current()" + textwrap.dedent(ASKS_AT_THE_END))
    assert run("--quiet", path).stdout == "True\n"
    path = script("import compilediag\nsession = compilediag.start()\nimport torch" + textwrap.dedent(ASKS_AT_THE_END))
    done = program_server.run(path)
    # The temporary session is removed later, so there is no warning.
    assert (done.stdout, done.stderr) == ("True\n", "")


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="no fork here")
def test_a_forked_child_writes_no_report(run, script, tmp_path):
    path = script("""
        import os, sys
        child = os.fork()
        if child == 0:
            sys.exit(3)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
        assert not os.path.exists("run.html")
        print("parent")
    """)
    done = run("--report", "run.html", path)
    assert (done.returncode, done.stdout) == (0, "parent\n"), done.stderr
    assert done.stderr.count("wrote ") == 1
    assert (tmp_path / "cwd" / "run.html").exists()


@pytest.mark.parametrize("method", multiprocessing.get_all_start_methods())
def test_multiprocessing_finds_the_script_and_only_the_parent_reports(run, script, tmp_path, method):
    path = script(f"""
        import multiprocessing, os

        class Square:
            def __call__(self, n):
                return n * n, os.getpid()

        if __name__ == "__main__":
            with multiprocessing.get_context({method!r}).Pool(1) as pool:
                (nine, pid), = pool.map(Square(), [3])
            print(nine, pid != os.getpid(), os.path.exists("run.html"))
    """)
    done = run("--report", "run.html", path)
    assert (done.returncode, done.stdout) == (0, "9 True False\n"), done.stderr
    assert done.stderr.count("wrote ") == 1


def test_an_interrupt_ends_the_run_by_signal_with_its_report(forked_commands, script, tmp_path):
    path = script(COMPILES + "print('ready', flush=True)\nimport time\ntime.sleep(600)")
    command = [sys.executable, "-m", "compilediag", "run", "--report", tmp_path / "run.html", path]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGINT)
        _, stderr = process.communicate(timeout=300)
    assert process.returncode == -signal.SIGINT
    assert stderr.count("KeyboardInterrupt") == 1
    assert stderr.splitlines()[-1].startswith("compilediag: interrupted; 3 compiles, 2 recompiles, ")
    assert "compilediag/cli" not in stderr
    assert "double" in read_page(tmp_path / "run.html")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["none.py"], "none.py does not exist; pass a Python script"),
        (["."], ". contains no logs and no sessions (*.cdiag); pass a Python script"),
        (["-m", "no.such.module"], "can't run no.such.module: no such module"),
        (["--report", "none/x.html", "train.py"], "can't write none/x.html: there is no folder none"),
        (["--report", ".", "train.py"], "can't write .: it is a folder"),
        (["--save", "no/folder/", "train.py"], "can't write no/folder/: there is no folder no"),
        (["--report", "/dev/full/x.html", "train.py"], "can't write /dev/full/x.html: there is no folder /dev/full"),
    ],
)
def test_what_cannot_work_is_one_line_before_the_script_starts(run_here, script, arguments, message):
    script("open('it_ran', 'w')")
    code, _, err = run_here("run", *arguments)
    assert code == 2 and err.startswith(f"compilediag: {message}") and err.count("\n") == 1
    assert os.listdir() == ["train.py"]


@pytest.mark.parametrize(
    ("arguments", "usage", "answer"),
    [
        (["plna", "x"], "", "unknown command 'plna'; did you mean 'plan'?"),
        (["--versoin"], "", "unknown option '--versoin'; did you mean '--version'?"),
        (["run", "--reprot", "x.html", "train.py"], "run ", "unknown option '--reprot'; did you mean '--report'?"),
        (["plan", "--cod"], "plan ", "unknown option '--cod'; did you mean '--code'?"),
        (["plan", "run.cdiag", "--cod"], "plan ", "unknown option '--cod'; did you mean '--code'?"),
        (["plan", "run.cdiag", "more"], "plan ", "unknown argument 'more'"),
        (["export", "x", "--format", "cvs"], "export ", "argument --format: unknown value 'cvs'; did you mean 'csv'?"),
        (["last", "plan", "--cod"], "last plan ", "unknown option '--cod'; did you mean '--code'?"),
        (["check", "--max-recompile", "0", "x"], "check ", "unknown option '--max-recompile'; did you mean "),
        (["xyz"], "", "unknown command 'xyz'; choose one of: run, last, "),
    ],
)
def test_a_wrong_word_is_answered_with_the_right_one_and_the_usage_of_the_command(run_here, arguments, usage, answer):
    code, _, err = run_here(*arguments)
    first, *_, last = err.splitlines()
    assert code == 2 and first.startswith(f"usage: compilediag {usage}[")
    assert last.startswith(f"compilediag {usage}".rstrip() + f": error: {answer}")


def test_doctor_finds_every_source_with_this_torch(program_server):
    done = program_server.run("-m", "compilediag", "doctor", "--verbose")
    assert done.returncode == 0, done.stdout + done.stderr
    sources = [line.split(maxsplit=2) for line in done.stdout.splitlines() if line.startswith("source ")]
    assert {"compiles", "recompiles"} <= {name for _, name, _ in sources}
    absent = [] if sys.version_info >= (3, 12) else ["unavailable: counting calls needs Python 3.12's sys.monitoring"]
    missing = [status for _, _, status in sources if status != "available" and "nothing to watch: " not in status]
    assert missing == absent
    assert [status for _, _, status in sources].count("available") > 10
    assert done.stdout.startswith("compilediag works: torch ")


def test_doctor_without_torch_says_so(python_without):
    done = python_without({"torch"}, "from compilediag.cli import main; sys.exit(main(['doctor']))")
    assert done.returncode == 1, done.stderr
    verdict, what, how, *_ = done.stdout.splitlines()
    assert verdict.startswith("compilediag does not work: torch is not installed")
    assert (what, how) == ("missing: torch", "  pip install torch")


def test_run_without_torch_is_one_line(python_without, script):
    path = script("print('it ran')")
    done = python_without({"torch"}, f"from compilediag.cli import main; sys.exit(main(['run', {str(path)!r}]))")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("compilediag: torch is not installed") and done.stderr.count("\n") == 1
