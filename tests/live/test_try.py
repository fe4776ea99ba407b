"""`compilediag try`: real scripts in processes of their own, without and with their plan."""

import dataclasses
import json
import os
import re
import runpy
import signal
import subprocess
import sys
import textwrap
import time
import types

import pytest

import compilediag
from compilediag.diagnosis import Edit
from compilediag.events import Recompile
from compilediag.trials.fresh_process import CellJob, ProcessRunner, ProgramJob, TrialProgress
from compilediag.trials.script_trial import try_script
from tests.unit.session_builder import make_plan, saved
from tests.unit.test_hostile_plans import REPRO, TRAIN, make_rows

#: Two causes at the same calls: the plan is two settings, or two edits. The option is one that it can't change.
TWO_CAUSES = """
import sys
import torch; STATIC = False

@torch.compile(backend="{backend}"{options})
def step(x, k):
    return (x * k).sum()

for n, k in ((4, 2), (6, 5), (7, 9), (9, 11)):
    x = torch.ones(n)
    print("loss", float(step(x, k)))
"""


def two_causes(backend="eager", options=", dynamic=STATIC"):
    return TWO_CAUSES.format(backend=backend, options=options)


@pytest.fixture
def run_try(program_server, tmp_path):
    """`compilediag try ...` in the folder of the scripts; standard input is empty."""

    def run(*args, **options):
        return program_server.run("-m", "compilediag", "try", *args, cwd=tmp_path, **options)

    return run


def read_tried(path):
    return types.SimpleNamespace(**compilediag.load(path).plan().tried)


ENDING = """
import os, time, uuid
print(sys.argv, __file__, __name__, sys.stdin.read())
print(object(), os.getpid(), time.time(), uuid.uuid4())
print(f"took {time.perf_counter():.6f} s")
sys.exit(3)
"""


def test_a_plan_of_settings_holds_and_is_saved(run_try, program_server, script, tmp_path):
    """The script gets its arguments and its input; what it prints differs by chance, and it ends with an exit code."""
    path = script(two_causes() + ENDING)
    before = path.read_bytes()
    done = run_try("--save", "run.cdiag", "train.py", "--", "--epochs", "3", "--plan", "x", input="typed\n" * 1000)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search("^recompiles +3 +0$", done.stdout, re.M) and re.search("^exit code +3 +3$", done.stdout, re.M)
    assert re.search("^output +the same$", done.stdout, re.M)
    assert "Tried, the plan holds: 3 recompiles -> 0, " in done.stdout
    assert path.read_bytes() == before
    assert sorted(os.listdir(tmp_path)) == ["run.cdiag", "train.py"]
    tried = read_tried(tmp_path / "run.cdiag")
    assert tried.holds and tried.same_output and tried.runs == 2 and tried.exit_codes == [3, 3]
    assert 0 < tried.compile_seconds_after < tried.wall_seconds_after
    assert 0 < tried.compile_seconds_before < tried.wall_seconds_before
    session = compilediag.load(tmp_path / "run.cdiag")
    assert "Tried, the plan holds" in session.summary()
    shown = program_server.run("-m", "compilediag", "plan", "--json", "run.cdiag", cwd=tmp_path)
    assert json.loads(shown.stdout)["tried"] == vars(tried)


def test_the_users_own_option_is_taken_away_in_the_copy_that_runs(run_try, script):
    path = script(two_causes(options=", dynamic=False"))
    done = run_try(path.name)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Tried, the plan holds: 3 recompiles -> 1, " in done.stdout
    assert "dynamic=False" in path.read_text()


EDITED = """
import traceback
import torch

@torch.compile(backend="eager")
def step(x):
    return x.sum()

def show_line():
    print(traceback.extract_stack()[-2].lineno, __file__)

for n in (4, 6, 7):
    x = torch.ones(n)
    print("loss", float(step(x)))
    show_line()
"""
LOOP = EDITED[EDITED.index("for n") :]


def make_plan_of_edit(file, old, new, line, **replaced):
    """A plan of one edit: what a rule prints may change, this does not."""
    kind = "replace" if replaced else "insert_before"
    edit = Edit(str(file), line, kind, old, new, **{"code": old, **replaced})
    return make_plan({"edits": (edit,), "change": new}, recompiles=1, recompiles_saved=1)


@pytest.fixture
def try_plan(tmp_path, program_server):
    """Tries a plan on a script in fresh processes, as the command does."""

    def run(path, plan, runs=1, timeout=None, process="compilediag.cli.try_process", **job):
        folder = tmp_path / "runs"
        folder.mkdir()
        runner = ProcessRunner(("-m", process), folder, timeout, TrialProgress(2))
        return try_script(runner, ProgramJob(str(path), **job), plan, runs), folder

    return run


@pytest.mark.long("interpreters that import torch themselves")
def test_edits_are_made_in_the_process_and_lines_stay(try_plan, script, fresh_interpreters):
    """The script and a module that it imports are edited."""
    model = script(EDITED, "model.py")
    path = script(EDITED + "import model\nprint(model.__file__, model.__spec__.origin)\n")
    before = path.read_bytes()
    code, mark = 'print("loss", float(step(x)))', "torch._dynamo.mark_dynamic(x, 0)"
    plan, other = (make_plan_of_edit(file, code, mark, 14) for file in (path, model))
    plan = dataclasses.replace(plan, steps=plan.steps + other.steps, recompiles=2, recompiles_saved=2)
    trial, folder = try_plan(path, plan)
    assert trial.outcome.holds, trial
    assert (trial.outcome.recompiles_before, trial.outcome.recompiles_after) == (2, 0)
    shown = (folder / "run-2" / "stdout").read_text()
    assert shown == (folder / "run-1" / "stdout").read_text()
    assert f"15 {path}" in shown and f"15 {model}" in shown and f"{model} {model}" in shown
    assert path.read_bytes() == before


def test_edits_of_notebook_cells_are_made_in_the_process_and_lines_stay(try_plan):
    """The cell has a magic of ours, one of IPython's, an `await`, and a result that is shown."""
    pytest.importorskip("IPython")
    from compilediag.frontends.cell_source import write_python

    cells = {2: EDITED[: EDITED.index("for n")], 5: f"%%compilewatch\nawait show()\n%pwd\n{LOOP}\nx.shape"}
    cells[3] = "async def show():\n    show_line()\n__file__ = 'notebook'"
    jobs = tuple(CellJob(number, cells[number], write_python(cells[number])) for number in sorted(cells))
    code, mark = 'print("loss", float(step(x)))', "torch._dynamo.mark_dynamic(x, 0)"
    plan = make_plan_of_edit("Cell In[5]", code, mark, 6)
    trial, folder = try_plan("notebook", plan, process="compilediag.frontends.cell_process", cells=jobs)
    assert trial.outcome.holds, trial
    assert (trial.outcome.recompiles_before, trial.outcome.recompiles_after) == (1, 0)
    shown = (folder / "run-2" / "stdout").read_text()
    assert shown == (folder / "run-1" / "stdout").read_text()
    assert "2 notebook\n" in shown and "7 notebook\n" in shown and "torch.Size([7])" in shown
    assert {row.user_file for row in compilediag.load(trial.session).data.rows(Recompile)} == {"Cell In[2]"}


def test_an_edit_that_raises_does_not_hold(try_plan, script):
    path = script(EDITED)
    plan = make_plan_of_edit(path, "n", "n.contiguous()", 13, code="x = torch.ones(n)", call="torch.ones(n)")
    trial, _ = try_plan(path, plan)
    assert not trial.outcome.holds
    assert trial.outcome.note.startswith("with the plan, it raised AttributeError: 'int' object")
    assert trial.outcome.note.endswith("(train.py:13)")


def test_a_file_that_was_changed_since_is_one_line(try_plan, script):
    path = script(EDITED)
    plan = make_plan_of_edit(path, "print(step(x))", "pass", 14)
    with pytest.raises(compilediag.errors.CompilediagError, match=r"train.py:14 is no longer `print\(step\(x\)\)`"):
        try_plan(path, plan)


def test_a_plan_of_a_saved_session_is_tried_and_stored_in_it(run_try, program_server, script, tmp_path):
    path = script(two_causes())
    with compilediag.watch(tmp_path / "run.cdiag", detail="full"):
        runpy.run_path(str(path), run_name="__main__")
    asked = run_try("--plan", "run.cdiag", "--runs", "1", path)
    assert (asked.returncode, asked.stdout) == (2, "") and asked.stderr.count("\n") == 1
    assert "nothing was run" in asked.stderr and "--yes" in asked.stderr
    done = run_try("--plan", "run.cdiag", "--yes", "--runs", "1", path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert read_tried(tmp_path / "run.cdiag").holds
    shown = program_server.run("-m", "compilediag", "plan", "run.cdiag", cwd=tmp_path)
    assert "Tried, the plan holds: 3 recompiles -> 0" in shown.stdout


def test_no_text_of_a_plan_is_run(run_try, script, tmp_path):
    """The guarded value is an item of a dict to the eye; the carriage return ends its comment. The plans of all kinds
    of guards are parsed in tests/unit/test_hostile_plans.py.
    """
    path = script(TRAIN + "\ntrain({'ids': torch.ones(3)}, 1.5)\nopen('it_ran', 'w')\n")
    rows = make_rows(str(path), "stride")
    for at, row in enumerate(rows):
        if isinstance(row, Recompile):
            source = row.guard_source.replace("x", REPRO).replace("k", REPRO)
            rows[at] = dataclasses.replace(row, file="/usr/lib/python3.11/site-packages/a.py", guard_source=source)
    folder = tmp_path / "session"
    folder.mkdir()
    done = run_try("--plan", saved(folder, *rows).path, "--yes", "--fast", "--runs", "1", "train.py")
    assert (tmp_path / "it_ran").exists() and not (tmp_path / "canary").exists(), done.stderr


def test_fast_compiles_nothing_with_inductor(run_try, script, tmp_path):
    path = script(two_causes("inductor"))
    done = run_try("--fast", "--runs", "1", "--save", "run.cdiag", path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "with the backend 'eager', so times were not compared" in done.stdout.replace("\n", " ")
    assert not re.search("^(compile|wall) time ", done.stdout, re.M)
    session = compilediag.load(tmp_path / "run.cdiag")
    assert read_tried(tmp_path / "run.cdiag").backend == "eager"
    assert len(session.recompiles) == 3 and session.compiles["inductor_s"].sum() == 0
    assert len(session.kernels) == 0


def test_with_inductor_each_process_compiles_from_empty_caches(run_try, script, tmp_path):
    path = script("""
        import os
        import torch

        f = torch.compile(lambda x: x @ x, dynamic=False)  # A call of a library: no C++ to compile.
        for n in (8, 16):
            print(float(f(torch.ones(n, n)).sum()))
        print(os.path.isdir(os.environ["TORCHINDUCTOR_CACHE_DIR"]))
    """)
    done = run_try("--runs", "1", "--save", "run.cdiag", path)
    assert done.returncode == 0, done.stdout + done.stderr
    tried = read_tried(tmp_path / "run.cdiag")
    assert (tried.recompiles_before, tried.recompiles_after, tried.backend) == (1, 0, None)
    lookups = compilediag.load(tmp_path / "run.cdiag").cache_lookups
    assert "hit" not in set(lookups[lookups["cache"] == "fx_graph"]["outcome"])


@pytest.mark.parametrize(
    ("ending", "message"),
    [
        ("raise ValueError('mine')", "train.py: it raised ValueError: mine (train.py:12)"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "train.py: it was ended by signal 9"),
    ],
)
def test_a_script_that_does_not_end_well_is_one_line(run_try, script, ending, message):
    path = script(two_causes() + ending)
    done = run_try(path)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"compilediag: {path.parent}/{message}\n"


def test_a_script_that_takes_too_long_is_ended(run_try, script, tmp_path):
    path = script("import time\ntime.sleep(600)")
    done = run_try("--timeout", "2.5", "--save", "run.cdiag", path)
    assert (done.returncode, done.stdout) == (1, "")
    *saved, ended, end = done.stderr.split("\n")
    nothing = "compilediag: run.cdiag was not written: the first run recorded nothing"
    assert saved in ([nothing], ["compilediag: wrote run.cdiag"]) and end == "", (
        "it depends on whether the watch had begun"
    )
    assert re.fullmatch(rf"compilediag: {path}: it took more than \d+ s and was ended", ended)


@pytest.mark.long("a process in each way of starting one, in each run")
def test_a_script_with_processes_of_its_own_and_much_output(run_try, script):
    main = textwrap.indent(two_causes(), "    ")
    path = script(f"""
import multiprocessing

def square(n):
    return n * n

if __name__ == "__main__":
    for method in multiprocessing.get_all_start_methods():
        with multiprocessing.get_context(method).Pool(1) as pool:
            print(pool.map(square, [3]))
    # The processes above import this file, and need no torch.
{main}
    for n in range(200_000):
        print(n, "x" * 50)
    sys.stderr.write("y" * 10_000_000)
""")
    done = run_try("--runs", "1", path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search("^recompiles +3 +0$", done.stdout, re.M) and re.search("^output +the same$", done.stdout, re.M)


def test_nothing_to_try_is_no_failure(run_try, script):
    script("import torch\ntorch.compile(lambda x: x, backend='eager')(torch.ones(2))")
    done = run_try("-m", "train", "--epochs", "3")
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr == "compilediag: train: nothing to try: nothing recompiled\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["none.py"], "compilediag: none.py does not exist; pass a Python script\n"),
        (["-m", "no.such.module"], "compilediag: can't run no.such.module: no such module\n"),
        (["--plan", "none.cdiag", "train.py"], "none.cdiag does not exist; pass a session (.cdiag)\n"),
        (["--save", "no/run.cdiag", "train.py"], "compilediag: can't write no/run.cdiag: there is no folder no\n"),
        (["--runs", "0", "train.py"], "'0' is not a number from 1 to 100\n"),
        (["--timeout", "-1", "train.py"], "'-1' is not a positive number of seconds\n"),
        ([], "the following arguments are required: SCRIPT, ARGS\n"),
    ],
)
def test_a_wrong_use_is_one_line_and_runs_nothing(run_here, script, arguments, message):
    script("open('it_ran', 'w')")
    code, out, err = run_here("try", *arguments)
    assert (code, out) == (2, "") and err.endswith(message) and os.listdir() == ["train.py"]


def test_an_interrupt_ends_the_process_of_the_script(script, tmp_path, fresh_interpreters):
    path = script(f"import os, time\nopen({str(tmp_path / 'pid')!r}, 'w').write(str(os.getpid()))\ntime.sleep(600)")
    command = [sys.executable, "-m", "compilediag", "try", path]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        pid = wait_for_pid(tmp_path / "pid")
        process.send_signal(signal.SIGINT)
        _, stderr = process.communicate(timeout=300)
    assert process.returncode == 130
    assert stderr == "compilediag: interrupted; nothing was compared\n"
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def wait_for_pid(file):
    for _ in range(6000):
        if file.exists() and file.read_text():
            return int(file.read_text())
        time.sleep(0.1)
    raise AssertionError("the script did not start")
