"""The notebooks run, find what they say they find, and are committed with outputs that are fit for GitHub."""

import importlib.util
import json
import os
import re
from pathlib import Path

import nbformat
import pytest

NOTEBOOKS = Path(__file__).resolve().parents[2] / "notebooks"
ALL = sorted(NOTEBOOKS.glob("*.ipynb"))
WIDGET = "application/vnd.jupyter.widget-view+json"
PLOTLY = "application/vnd.plotly.v1+json"
MAX_BYTES = 300_000
#: Absolute paths: of Unix, also inside of quotes and texts, and of Windows. Those of the web have "//" before them.
MACHINE_PATH = re.compile(r"(?<![\w/.:<])/(?:[a-z]\w*)/[\w.-]+|\b[A-Z]:\\")


def load_executor():
    spec = importlib.util.spec_from_file_location("notebooks_execute", NOTEBOOKS / "execute.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


executor = load_executor()


#: Notebook -> the backend that tests run it with: causes and fixes are the same, and no kernels are compiled.
QUICK_BACKENDS = {"01_quickstart.ipynb": "aot_eager", "04_guard_explorer.ipynb": "eager"}


class Executed(dict):
    """Name -> notebook, run in a fresh kernel when it is first asked for."""

    def __missing__(self, name):
        parameters = {"BACKEND": QUICK_BACKENDS[name]} if name in QUICK_BACKENDS else {}
        self[name] = executor.execute(NOTEBOOKS / name, **parameters)
        return self[name]


@pytest.fixture(scope="module")
def executed():
    """The notebooks, run where this checkout is found; a cell that fails is an error here."""
    with pytest.MonkeyPatch.context() as patch:
        path = os.pathsep.join(filter(None, (str(NOTEBOOKS.parent), os.environ.get("PYTHONPATH"))))
        patch.setenv("PYTHONPATH", path)
        yield Executed()


def outputs(notebook):
    return [output for cell in notebook.cells for output in cell.get("outputs", ())]


def printed(notebook):
    return "".join(output["text"] for output in outputs(notebook) if output["output_type"] == "stream")


@pytest.fixture(scope="module")
def quickstart(executed):
    return executed["01_quickstart.ipynb"]


@pytest.fixture(scope="module")
def told(quickstart):
    """The line that the quickstart prints for this test."""
    return last_line(quickstart)


def last_line(notebook):
    return json.loads(notebook.cells[-1]["outputs"][0]["text"])


def figures(notebook):
    return [o["data"][PLOTLY] for o in outputs(notebook) if PLOTLY in o.get("data", {})]


@pytest.mark.parametrize("file", ALL, ids=lambda file: file.name)
def test_no_cell_of_a_notebook_fails(executed, file):
    assert not [o for o in outputs(executed[file.name]) if o["output_type"] == "error"]


@pytest.mark.long("compiles the kernels of 21 graphs and their backward passes; the other tests use a quicker backend")
def test_the_quickstart_runs_with_the_backend_that_it_names(executed):
    runs = last_line(executor.execute(NOTEBOOKS / "01_quickstart.ipynb"))["runs"]
    assert [run["recompiles"] for run in runs] == [5, 4, 3, 2, 1, 0]
    assert runs[-1]["lost_s"] == 0 < runs[0]["lost_s"]


def test_the_quickstart_is_among_the_notebooks():
    assert "01_quickstart.ipynb" in [file.name for file in ALL]


def test_quickstart_finds_five_causes_at_the_first_run(told):
    guards = told["runs"][0]["guards"]
    assert sorted(set(guards)) == ["grad_mode", "keep", "self.step", "temperature", "tokens.size()[1]"]
    counter, *others = told["asked"]
    assert counter in ("counter", "module_int")
    assert others == ["grad_mode", "float_changes", "optional_argument", "size_changes"]


def test_each_fix_of_the_quickstart_takes_away_one_recompile(told):
    recompiles = [run["recompiles"] for run in told["runs"]]
    assert recompiles == [5, 4, 3, 2, 1, 0]


def test_the_fixes_save_what_was_lost_and_do_not_change_the_training(told):
    first, last = told["runs"][0], told["runs"][-1]
    assert last["lost_s"] == 0
    assert 0 < first["lost_s"] < first["compiling_s"]
    assert [run["last_loss"] for run in told["runs"]] == pytest.approx([first["last_loss"]] * 6, abs=1e-3)


def test_quickstart_shows_the_live_dashboard_and_a_text_for_where_there_is_none(quickstart):
    (widget,) = (o["data"] for o in outputs(quickstart) if WIDGET in o.get("data", {}))
    assert widget["text/plain"].startswith("compilediag: ")


def test_quickstart_prints_the_summary_and_writes_the_report(quickstart):
    text = printed(quickstart)
    assert "5 recompiles" in text
    assert "quickstart.html is written" in text


def test_the_notebook_on_autotuning_tells_what_pays_and_what_never_does(executed):
    notebook = executed["02_autotune.ipynb"]
    told = last_line(notebook)
    assert told["runs"] > 10 and told["choices"] > 5 * told["runs"]
    assert told["failed"] >= 4 and "choices_failed" in told["rules"], "the tiles of 256 x 256 fit nowhere"
    assert 0 < told["never"] + told["pays"] < told["runs"], "some have no library kernel to be held against"
    assert told["calls"] is None or told["calls"] > 0
    assert len(told["whole"]) == 10, "each function is called tuned and not tuned"
    choices, margins, payoff = figures(notebook)
    assert {"triton", "extern"} <= {trace["name"] for trace in choices["data"]}
    assert len(margins["data"]) == 2 and len(payoff["data"]) >= 2
    assert "recorded" in printed(notebook).splitlines()[0]


def test_the_notebook_on_cuda_graphs_tells_storms_skips_and_coverage(executed):
    notebook = executed["03_cudagraphs.ipynb"]
    told = last_line(notebook)
    assert {"record", "rerecord", "skip", "limit", "stuck", "warmup", "replays", "user_capture"} <= set(told["actions"])
    assert {"cudagraph_sizes", "cudagraph_skip", "cudagraph_limit", "cudagraph_stuck"} <= set(told["rules"])
    assert told["functions"] > 5 and told["replays"] > 500
    assert told["least_covered"] == 0.0, "what is skipped is replayed never"
    actions, coverage, skips, captures = figures(notebook)
    assert [trace["name"] for trace in coverage["data"]] == ["replayed", "captured", "no graph"]
    assert sum(len(figure["data"]) for figure in (actions, skips, captures)) > 5
    assert "recorded" in printed(notebook).splitlines()[0]


#: Program of the notebook on the explorer -> the rule that is to be first, and the setting that is to mend it.
PROGRAMS = {
    "requests": ("size_changes", "dynamic_sources"),
    "training": ("counter", "dynamic_sources"),
    "rates": ("float_changes", None),
    "epochs": ("grad_mode", None),
    "calls": ("fresh_object", None),
    "decoding": ("recompile_limit", "recompile_limit"),
}


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_notebook_on_the_explorer_goes_from_each_symptom_to_a_program_that_does_not_recompile(executed, program):
    told = last_line(executed["04_guard_explorer.ipynb"])
    rule, setting = PROGRAMS[program]
    assert told[program]["recompiles"] >= 2
    assert rule in (told[program]["rules"] if program == "epochs" else told[program]["rules"][:1])
    assert told[f"{program}_fixed"] == {**told[f"{program}_fixed"], "recompiles": 0, "rules": []}
    verified = told["verified"].get(program, {"holds": False, "fix": None})
    assert (verified["holds"], list(verified["fix"] or [None])) == (setting is not None, [setting])


def test_the_notebook_on_the_explorer_shows_it_and_advises_two_settings_and_one_change_of_the_code(executed):
    notebook = executed["04_guard_explorer.ipynb"]
    widgets = [o["data"] for o in outputs(notebook) if WIDGET in o.get("data", {})]
    assert len(widgets) == len(PROGRAMS)
    assert all("recompiles, and what failed in which entry" in widget["text/plain"] for widget in widgets)
    advised = last_line(notebook)["advised"]
    assert advised["fix"]["dynamic_sources"] == "L['self'].step,L['tokens']"
    assert (advised["recompiles"], advised["left"]) == (4, 1)
    assert "the same numbers come out: True" in printed(notebook)


@pytest.mark.parametrize("file", ALL, ids=lambda file: file.name)
def test_committed_notebook_is_executed_from_top_to_bottom(file):
    notebook = nbformat.read(file, as_version=4)
    counts = [cell.execution_count for cell in notebook.cells if cell.cell_type == "code"]
    assert counts == list(range(1, len(counts) + 1))
    assert printed(notebook)
    assert not [o for o in outputs(notebook) if o["output_type"] == "error"]


@pytest.mark.parametrize("file", ALL, ids=lambda file: file.name)
def test_committed_notebook_is_small_and_of_no_machine(file):
    assert file.stat().st_size < MAX_BYTES
    notebook = nbformat.read(file, as_version=4)
    assert "widgets" not in notebook.metadata
    assert not [o for o in outputs(notebook) if WIDGET in o.get("data", {})]
    shown = json.dumps(outputs(notebook), ensure_ascii=False)
    assert not MACHINE_PATH.findall(shown)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("/home/me/model.py:3", True),
        ('File "/tmp/ipykernel_12/1.py"', True),
        ("C:\\Users\\me", True),
        ("https://pytorch.org/docs/stable", False),
        ("text/plain and </div>", False),
    ],
)
def test_machine_paths_are_told_from_other_texts(text, found):
    assert bool(MACHINE_PATH.search(text)) is found
