"""The magics in a real IPython, and in a real kernel; the compiler is real in both."""

import os
import re

import pytest

nbformat = pytest.importorskip("nbformat")
pytest.importorskip("nbclient")

from IPython.core.interactiveshell import InteractiveShell  # noqa: E402
from jupyter_client.manager import start_new_kernel  # noqa: E402
from nbclient import NotebookClient  # noqa: E402
from nbclient.exceptions import CellExecutionError  # noqa: E402
from traitlets.config import Config  # noqa: E402

import compilediag  # noqa: E402
from tests.inside import read_page  # noqa: E402

SETUP = """
import torch

@torch.compile(backend="eager", dynamic=False)
def double(x):
    return x * 2
"""
#: Trials are forks, but those of one test: they show that fresh interpreters do the same.
pytestmark = pytest.mark.usefixtures("program_server")

ACTIONS = ("on", "off", "try", "fix", "status", "plan", "findings", "explore", "report", "save")
TWO_RECOMPILES = "for size in (2, 3, 4):\n    double(torch.ones(size))\n"


@pytest.fixture(scope="module")
def ipython(tmp_path_factory):
    """An IPython that leaves the user's own history and profile alone."""
    settings = Config()
    settings.HistoryManager.hist_file = ":memory:"
    settings.InteractiveShell.colors = "nocolor"
    settings.InteractiveShell.ipython_dir = str(tmp_path_factory.mktemp("ipython"))
    InteractiveShell.clear_instance()
    yield InteractiveShell.instance(config=settings)
    InteractiveShell.clear_instance()


@pytest.fixture
def shell(ipython):
    """An IPython with the extension loaded and a compiled function `double`."""
    ipython.run_cell("%load_ext compilediag")
    assert ipython.run_cell(SETUP).success
    yield ipython
    ipython.run_cell("%unload_ext compilediag")
    ipython.user_ns.pop("started", None)


def run(shell, cell):
    return shell.run_cell(cell, store_history=True)


def test_a_cell_under_watch_gives_its_result_as_ever(shell, capsys):
    typed = f"%%compilewatch\n{TWO_RECOMPILES}double(torch.ones(2)).sum().item()"
    result = run(shell, typed)
    out = capsys.readouterr().out
    assert [raw for *_, raw in shell.history_manager.get_range(raw=True)][-1] == typed
    assert (result.success, result.result) == (True, 4.0)
    assert re.search(r"compilediag: 3 compiles took .*; 2 recompiles cost .*\n", out)
    assert out.index("4.0") < out.index("compilediag: 3 compiles")
    assert shell.user_ns["_"] == 4.0
    assert shell.user_ns["In"][-1].endswith(".item()")
    assert compilediag.current() is None


def test_an_exception_is_shown_once_with_the_line_of_the_cell(shell, capsys):
    result = run(shell, "%%compilewatch\nimport math\nmath.sqrt(-1)")
    out = capsys.readouterr().out
    assert isinstance(result.error_in_exec, ValueError)
    assert out.count("Traceback (most recent call last)") == 1
    assert "1 # %%compilewatch\n" in out and "----> 3 math.sqrt(-1)" in out
    assert "get_ipython" not in out and "magics_manager" not in out
    assert "compilediag: 0 compiles; 0 recompiles" in out
    assert compilediag.current() is None


def test_other_cell_magics_work_inside_and_outside(shell, capsys):
    assert run(shell, f"%%compilewatch\n%%capture inner\n{TWO_RECOMPILES}print('in')").success
    assert shell.user_ns["inner"].stdout == "in\n"
    assert "2 recompiles" in capsys.readouterr().out
    assert run(shell, "%%capture outer\n%%compilewatch\nprint('in')").success
    assert "in\n" in shell.user_ns["outer"].stdout and "0 recompiles" in shell.user_ns["outer"].stdout
    assert compilediag.current() is None


def test_a_report_that_cannot_be_written_stops_the_cell_before_it_starts(shell, tmp_path, capsys):
    result = run(shell, f"%%compilewatch --report {tmp_path}/none/x.html\nstarted = True")
    assert not result.success and "started" not in shell.user_ns
    assert capsys.readouterr().err.startswith("UsageError: can't write")


def test_a_recompile_fails_the_cell_in_one_line(shell, capsys):
    result = run(shell, f"%%compilewatch --fail-on-recompile\n{TWO_RECOMPILES}")
    out = capsys.readouterr().out
    assert type(result.error_in_exec).__name__ == "Recompiled"
    assert "2 in this cell: " in str(result.error_in_exec)
    assert "x.size()[0]" in str(result.error_in_exec)
    assert "Traceback" not in out and out.count("Recompiled: ") == 1


@pytest.mark.swallows
def test_recompiles_that_nobody_could_see_fail_the_cell(shell, monkeypatch):
    monkeypatch.delattr("torch._dynamo.convert_frame.get_and_maybe_log_recompilation_reasons")
    result = run(shell, "%%compilewatch --fail-on-recompile --quiet\npass")
    assert "recompiles were not collected" in str(result.error_in_exec)


def test_a_watch_that_is_on_stays_on_and_the_cell_counts_its_own(shell, capsys):
    with compilediag.watch() as session:
        run(shell, TWO_RECOMPILES)
        capsys.readouterr()
        assert run(shell, "%%compilewatch --fail-on-recompile --quiet\nx = double(torch.ones(2))").success
        assert capsys.readouterr() == ("", "")
        run(shell, "%%compilewatch\ndouble(torch.ones(5))")
        assert re.search("compilediag: 1 compile took .*; 1 recompile cost ", capsys.readouterr().out)
        assert compilediag.current() is session
    assert len(session.recompiles) == 3


def test_another_detail_than_that_of_the_watch_that_is_on_is_refused(shell, capsys):
    with compilediag.watch(detail="lean"):
        for cell in ("%compilewatch on --detail full", "%%compilewatch --detail full\npass"):
            assert not run(shell, cell).success
            assert capsys.readouterr().err.startswith("UsageError: a watch with detail 'lean' is already running")
        assert run(shell, "%%compilewatch --quiet\npass").success


def test_calls_are_counted_if_it_is_asked_for(shell, capsys):
    assert run(shell, "session = %compilewatch on --calls").success
    assert shell.user_ns["session"].meta["asked_for"] == ["calls", "guard_checks"]
    assert run(shell, "%%compilewatch --quiet --calls\npass").success
    assert run(shell, "%compilewatch off").success
    assert run(shell, "%%compilewatch --quiet --calls\nimport compilediag\nsession = compilediag.current()").success
    assert shell.user_ns["session"].meta["asked_for"] == ["calls", "guard_checks"]
    with compilediag.watch():
        assert not run(shell, "%%compilewatch --calls\npass").success
        assert capsys.readouterr().err.startswith("UsageError: a watch that does not count calls is already running")


def test_on_gives_the_session_and_off_ends_it(shell, capsys, tmp_path):
    assert run(shell, "session = %compilewatch on --detail lean").success
    session = shell.user_ns["session"]
    assert session is compilediag.current() and session.meta["detail"] == "lean"
    run(shell, TWO_RECOMPILES)
    written = (f"report {tmp_path}/x.html", f"save {tmp_path}/x.cdiag")
    for line in ("status", "explore", "findings", "plan", *written, "off"):
        assert run(shell, f"%compilewatch {line}").success
    out = capsys.readouterr().out
    assert "recompiles" in out and "active" in out and "change removes" in out
    assert "double" in out and "dynamic_sources" in out
    assert re.search(r"compilediag: watch stopped\ncompilediag: \d+ compiles?", out)
    assert compilediag.current() is None
    assert len(compilediag.load(tmp_path / "x.cdiag").recompiles) == len(session.recompiles) == 2
    assert "double" in read_page(tmp_path / "x.html")
    capsys.readouterr()
    assert run(shell, "%compilewatch findings").success
    *_, example, more = capsys.readouterr().out.rstrip().splitlines()
    assert "!compilediag example size_changes" in example and "%compilewatch explore" in more
    assert run(shell, "%compilewatch explore").success


def test_unloading_takes_everything_away(shell):
    run(shell, "%compilewatch")
    run(shell, "%unload_ext compilediag")
    assert compilediag.current() is None
    assert "compilewatch" not in shell.magics_manager.magics["line"]
    assert "compilewatch" not in shell.magics_manager.magics["cell"]
    assert not run(shell, "%%compilewatch\npass").success
    for _ in range(2):
        run(shell, "%load_ext compilediag")
    assert run(shell, "%%compilewatch --quiet\npass").success


def test_the_magics_need_no_anywidget(python_without):
    code = """
from IPython.core.interactiveshell import InteractiveShell

shell = InteractiveShell.instance()
for line in ("%load_ext compilediag", "%compilewatch off", "%unload_ext compilediag"):
    assert shell.run_cell(line).success
"""
    done = python_without({"anywidget"}, code)
    assert (done.returncode, done.stdout) == (0, "compilediag: no watch is running\n"), done.stderr


def test_help_shows_each_magic_once_and_as_it_is_typed(shell, capsys):
    options = ("--detail {lean,full}", "--calls", "--my-code PATH")
    of_cells = ("--report PATH", "--quiet", "--fail-on-recompile")
    for asked, usage, own, others in (
        ("%compilewatch?", "%compilewatch [SUBCOMMAND] [PATH] [options]", ACTIONS, of_cells),
        (
            "%%compilewatch?",
            "%%compilewatch [options]\n%%compilewatch try | fix",
            of_cells,
            ("\nsubcommands:", "findings"),
        ),
    ):
        run(shell, asked)
        text = capsys.readouterr().out
        assert f"\n{usage}\n" in text and "%%%" not in text and "::" not in text
        assert all(re.search(rf"^  {re.escape(name)}(?= |$)", text, re.MULTILINE) for name in (*options, *own))
        assert text.count("\noptions:\n") == 1 and not any(other in text for other in others)
        assert max(map(len, text.splitlines())) <= 100 or "File:" in text
        for option in ("--help", "fix -h"):
            assert run(shell, f"{asked.rstrip('?')} {option}\n").success
            assert f"{usage}\n" in capsys.readouterr().out
    assert run(shell, "%%compilewatch --help\nstarted = True").success and "started" not in shell.user_ns
    assert compilediag.current() is None


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        ("%compilewatch repor x.html", "%compilewatch has no subcommand 'repor'; did you mean 'report'?"),
        ("%compilewatch status --detial full", "%compilewatch: unknown option '--detial'; did you mean '--detail'?"),
        ("%%compilewatch --fail\nstarted = True", None),
        ("%%compilewatch --no-recompile\nstarted = True", "did you mean '--fail-on-recompile'?"),
        ("%compilewatch xyz", "choose one of: on, off, try, fix, status, plan, findings, explore, report, save"),
        ("%compilewatch report", ""),
        ("%compilewatch on there", ""),
        ("%compilewatch --detail most", ""),
        ("%compilewatch status", ""),
        (
            "%compilewatch report x.txt",
            "a report is an HTML file, but the path is 'x.txt'; use a path such as 'x.html'",
        ),
        ("%%compilewatch --report 'a b.txt'\nstarted = True", "use a path such as 'a b.html'"),
    ],
)
def test_a_wrong_name_is_answered_with_the_right_one(shell, capsys, cell, message):
    result = run(shell, cell)
    captured = capsys.readouterr()
    if message is None:
        assert result.success and shell.user_ns["started"], "an option can be shortened"
        return
    assert not result.success and "started" not in shell.user_ns and captured.out == ""
    assert captured.err.startswith("UsageError: ") and captured.err.endswith(f"{message}\n")
    assert captured.err.count("\n") == 1 and not os.path.exists("x.txt") and compilediag.current() is None


def test_what_was_written_is_said_with_its_place(shell, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert run(shell, f"%%compilewatch --report 'a b.html'\n{TWO_RECOMPILES}").success
    (path,) = re.findall(r"compilediag: wrote the report \([\d.]+ [kM]B\) to (.*)\n", capsys.readouterr().out)
    assert path == str(tmp_path / "a b.html") and "double" in read_page(path)
    assert run(shell, "%compilewatch save copy.cdiag").success
    assert "compilediag: wrote the session (" in (out := capsys.readouterr().out)
    assert out.endswith(f" to {tmp_path / 'copy.cdiag'}\n")


def complete(client, code):
    """What a frontend shows at the end of the code: the texts that replace its last word."""
    reply = client.complete(code, reply=True, timeout=300)["content"]
    assert reply["status"] == "ok"
    end = len(code.splitlines()[0])
    assert reply["cursor_end"] == end and code[reply["cursor_start"] : end] == re.split(r"\s", code)[-1]
    return reply["matches"]


def test_a_frontend_completes_the_magics_and_shows_their_help(kernel):
    for name in ("run.html", "run.cdiag", "notes.txt"):
        (kernel.folder / name).touch()
    (kernel.folder / "reports").mkdir()
    kernel.execute_interactive("%load_ext compilediag", timeout=300, store_history=False)
    assert complete(kernel, "%compilewatch re") == ["report"]
    assert complete(kernel, "session = %compilewatch o") == ["off", "on"]
    assert sorted(complete(kernel, "%compilewatch ")) == sorted(ACTIONS)
    assert complete(kernel, "%compilewatch status --de") == ["--detail"]
    assert sorted(complete(kernel, "%compilewatch --detail ")) == ["full", "lean"]
    assert complete(kernel, "%compilewatch report r") == ["reports/", "run.html"]
    assert complete(kernel, "%compilewatch save r") == ["reports/", "run.cdiag"]
    assert complete(kernel, "%%compilewatch --fa") == ["--fail-on-recompile"]
    assert complete(kernel, "%%compilewatch --report ru") == ["run.html"]
    for magic in ("%compilewatch", "%%compilewatch"):
        (page,) = kernel.execute(f"{magic}?", reply=True, timeout=300, store_history=False)["content"]["payload"]
        shown = page["data"]["text/plain"]
        assert re.search(rf"(?<!%){magic} \[", shown) and shown.count("\noptions:") == 1
    kernel.execute_interactive("%unload_ext compilediag", timeout=300, store_history=False)
    assert "report" not in kernel.complete("%compilewatch re", reply=True, timeout=300)["content"]["matches"]


def test_an_option_in_a_cell_before_is_the_first_change(shell):
    run(shell, "def scale(x, k):\n    return x * k")
    run(shell, "fast = torch.compile(\n    scale,\n    backend='eager',\n    dynamic=False,\n)")
    run(shell, "fast = torch.compile(  # once more\n    scale,\n    backend='eager',\n    dynamic=False,\n)")
    name = f"Cell In[{shell.execution_count - 1}]"
    run(shell, "session = %compilewatch on")
    run(shell, "for k in (2, 3, 4, 5):\n    fast(torch.ones(4), k)")
    run(shell, "%compilewatch off")
    plan = shell.user_ns["session"].plan()
    [step] = plan.steps
    assert (step.file, step.line, step.recompiles_saved) == (name, 4, 2)
    [source] = plan.changed_sources()
    assert (source.name, source.after) == (name, source.before.replace("    dynamic=False,\n", ""))
    assert [(line.number, line.mark, line.step) for line in source.lines if line.mark != " "] == [(4, "-", 1)]
    assert f"--- a/{name}\n" in plan.patch()


def notebook(*cells):
    return nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])


def test_in_a_kernel_the_dashboard_is_shown_and_a_recompile_stops_the_notebook(tmp_path):
    cells = notebook(
        f"%load_ext compilediag\n{SETUP}",
        "%%compilewatch\nimport asyncio\nawait asyncio.sleep(0)\ndouble(torch.ones(2)).sum()",
        f"%%compilewatch try\n{TWO_RECOMPILES}",
        f"%%compilewatch --fail-on-recompile --quiet\n{TWO_RECOMPILES}",
        "print('not reached')",
    )
    environment = {**os.environ, "IPYTHONDIR": str(tmp_path)}
    with pytest.raises(CellExecutionError, match="2 in this cell"):
        NotebookClient(cells, timeout=600, startup_timeout=300, kernel_name="python3").execute(
            cwd=str(tmp_path), env=environment
        )
    _, watched, tried, failing, last = (cell["outputs"] for cell in cells["cells"])
    shown = [output["data"] for output in watched if "data" in output]
    assert shown[0]["text/plain"].startswith("compilediag: 1 compile took ")
    assert "<strong>compilediag: 1 compile took " in shown[0]["text/html"]
    assert shown[-1]["text/plain"] == "tensor(4.)"
    # The bar is removed when the trial ends.
    assert [output["data"]["text/html"] for output in tried if "data" in output] == [""]
    assert "Tried, the plan holds: 2 recompiles -> 1" in tried[-1]["text"]
    assert [output["output_type"] for output in failing] == ["error"]
    assert last == []


def test_only_a_result_that_is_assigned_is_a_result(shell, capsys):
    """Else the empty summary would be printed below the dashboard."""
    assert run(shell, "%compilewatch on").result is None
    assert "Nothing was compiled" not in capsys.readouterr().out
    assert run(shell, "started = %compilewatch on").success
    assert shell.user_ns["started"] is compilediag.current()
    assert run(shell, "%compilewatch off").success


# --- trials of the executed cells ------------------------------------------------------------------------------------


@pytest.fixture
def kernel(tmp_path_factory):
    """A real kernel, in a folder of its own."""
    folder = tmp_path_factory.mktemp("kernel")
    environment = {**os.environ, "IPYTHONDIR": str(folder / "ipython")}
    manager, client = start_new_kernel(startup_timeout=300, kernel_name="python3", cwd=str(folder), env=environment)
    client.folder = folder
    yield client
    client.stop_channels()
    manager.shutdown_kernel(now=True)


@pytest.fixture
def run_cell(kernel):
    """Runs a cell in the kernel, gives what it printed, or the error that it shows; `run_cell.number` is its number."""

    def run_cell(text):
        outputs = []
        reply = kernel.execute_interactive(
            text, timeout=300, output_hook=lambda message: outputs.append(message["content"])
        )
        run_cell.number = reply["content"]["execution_count"]
        return "".join(content.get("text") or content.get("ename", "") for content in outputs)

    return run_cell


DEFINE = """import torch
state = {"runs": 0}
@torch.compile(backend="eager", dynamic=False)
def double(x):
    return x * 2
"""
RECORD = "import compilediag\nearly = compilediag.start()\ndouble(torch.ones(7))\ncompilediag.stop()"
INTERRUPTED = "interrupted = True\nraise KeyboardInterrupt"
WIDGET = "import ipywidgets\nslider = ipywidgets.IntSlider(3)"
NOTHING = "compilediag: nothing to try: nothing recompiled\n"
STATE = "print(state, compilediag.current())"
TOTAL = """
state["runs"] += 1
for length in (2, 3, 4):
    total = float(double(torch.ones(length)).sum())
print("runs", state["runs"], "total", total)
"""


@pytest.mark.long("a trial for each of many cells")
def test_the_executed_cells_are_tried_in_fresh_processes(run_cell):
    """Nothing of the kernel is used or changed: neither its variables nor what it has compiled."""
    run_cell("%load_ext compilediag")
    run_cell("def fail():\n    raise ValueError('mine')")
    first = run_cell.number
    for number, (cell, message) in enumerate(
        (
            ("fail()", f"raised ValueError: mine (Cell In[{first}]:2)"),
            ("name = input()", f"raised EOFError: nobody can answer input() (Cell In[{first + 2}]:2)"),
        ),
        first + 1,
    ):
        shown = run_cell(f"%%compilewatch try\n{cell}")
        assert shown == f"compilediag: in a fresh process, Cell In[{number}] {message}\n"
    assert NOTHING in run_cell("%%compilewatch try\nimport asyncio\nawait asyncio.sleep(0)\nx = 1")
    # A cell that was tried was not executed, and is no part of the trials below, which would fail as it did.
    assert "NameError" in run_cell("x")

    for cell in ["files = !echo one\n!echo two\nassert files", DEFINE, RECORD, "early", "1 / 0", INTERRUPTED, WIDGET]:
        run_cell(cell)
    widget, defined = run_cell.number, run_cell.number - 5
    assert run_cell(f"%%compilewatch --quiet{TOTAL}") == "runs 1 total 8.0\n"
    run_cell("raise RuntimeError('below the watched cell')")
    shown = run_cell("%compilewatch try")
    assert "1 change removes 2 of 3 recompiles" in shown and "runs 1" not in shown
    assert "Tried, the plan holds: 3 recompiles -> 1, " in shown and "same output" in shown.replace("\n", " ")
    assert f"\nLeft out, because you interrupted it: Cell In[{widget - 1}].\n" in shown
    assert shown.endswith("\nIn a fresh process, widgets have their first values: `slider`.\n")
    assert run_cell(STATE) == "{'runs': 1} None\n"
    assert "Tried, the plan holds: 3 recompiles -> 1, " in run_cell("%compilewatch findings")
    found = run_cell("%compilewatch fix")
    assert "1 line changed: recompiles 3 -> 0 (proven: " in found and f"+++ b/Cell In[{defined}]\n" in found
    assert '+@torch.compile(backend="eager", dynamic=True)\n' in found
    assert run_cell(STATE) == "{'runs': 1} None\n"


GROWING = """%%compilewatch --quiet
import torch

@torch.compile(backend="eager", dynamic=False)
def step(x):
    return (x * 2).sum()

for n in (3, 4, 5):
    step(torch.ones(n))
"""


def test_fix_runs_the_executed_cells_without_those_that_are_left_out(run_cell, tmp_path):
    mark = tmp_path / "mark"
    append = f"with open({str(mark)!r}, 'a') as file: print('x', end='', file=file)"
    run_cell("%load_ext compilediag")
    run_cell(append)
    skipped = run_cell.number
    run_cell(f"# compilediag: skip\n{append}")
    run_cell(GROWING)
    shown = run_cell(f"%compilewatch fix --fast --cpu --skip {skipped}")
    assert "recompiles 2 -> 0" in shown and "+++ b/Cell In[" in shown
    assert mark.read_text() == "xx"
    assert "UsageError" in run_cell("%compilewatch fix --skip 9999")


SCALING = """%%compilewatch --quiet
class Scale(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.factor = 1

    def forward(self, x):
        return x * self.factor

scale = torch.compile(Scale(), backend="eager")
for factor in (2, 3, 4):
    scale.factor = factor
    scale(torch.ones(4))
"""


@pytest.mark.long("a search whose processes import torch themselves")
def test_a_setting_goes_to_the_cell_that_imports_torch(fresh_interpreters, run_cell):
    run_cell("%load_ext compilediag")
    run_cell("import torch")
    importing = run_cell.number
    run_cell(SCALING)
    shown = run_cell("%compilewatch fix --fast --cpu")
    assert "recompiles 2 -> 0" in shown and shown.count("+++ b/") == 1 and f"+++ b/Cell In[{importing}]\n" in shown
    added = [line.strip() for line in shown.splitlines() if line.strip().startswith("+") and "+++" not in line]
    assert len(added) == 1 and ".config." in added[0]
