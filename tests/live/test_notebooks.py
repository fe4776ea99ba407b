"""The notebooks run, find the causes they describe, and have stored outputs that GitHub can show."""

import json
import re
from pathlib import Path

import nbformat
import pytest

from tests.loading import load_script
from tests.tiers import quick

NOTEBOOKS = Path(__file__).resolve().parents[2] / "notebooks"
ALL = sorted(NOTEBOOKS.glob("*.ipynb"))
QUICK = [NOTEBOOKS / f"{name}.ipynb" for name in ("01_quickstart", "02_autotune", "03_cudagraphs")]
#: The notebooks that are executed, as cases of a test.
EXECUTED = quick(ALL, QUICK, why="executes a whole notebook")
WIDGET = "application/vnd.jupyter.widget-view+json"
PLOTLY = "application/vnd.plotly.v1+json"
MAX_BYTES = 300_000
#: Absolute paths of Unix (also inside quotes and text) and of Windows. In URLs, "//" comes first.
MACHINE_PATH = re.compile(r"(?<![\w/.:<])/(?:[a-z]\w*)/[\w.-]+|\b[A-Z]:\\")
#: What is drawn, or printed only if it takes long enough, and times without a unit.
VARYING = re.compile(r"█+|^ *phase .*$|\b\d+\.\d+\b(?! (?:s|ms)\b)|(?:; )?\bcompiling took [^;\n]*", re.MULTILINE)

executor = load_script(NOTEBOOKS / "execute.py")
outputs = load_script(NOTEBOOKS.parent / "docs" / "make_outputs.py")

#: Notebook -> the backend that tests use. Causes and fixes are the same, and no kernels are compiled.
QUICK_BACKENDS = {"00_tutorial.ipynb": "eager", "01_quickstart.ipynb": "eager"}
#: Notebook -> what tests read of it: an expression that is evaluated behind its last cell.
RESULTS = {
    "01_quickstart.ipynb": """{"runs": runs, "asked": [finding.rule for finding in shown]}""",
    "02_autotune.ipynb": """{
        "runs": len(runs),
        "choices": len(session.autotune),
        "failed": int(session.autotune["fail_reason"].notna().sum()),
        "never": len(never),
        "pays": len(paying),
        "calls": calls,
        "whole": {name: None if pd.isna(n) else int(n) for name, n in whole["break_even"].items()},
        "rules": sorted({finding.rule for finding in found}),
    }""",
    "03_cudagraphs.ipynb": """{
        "functions": len(functions),
        "actions": session.cudagraphs["action"].value_counts().to_dict(),
        "replays": int(functions["replays"].sum()),
        "least_covered": float(functions["coverage"].min()),
        "rules": sorted({finding.rule for finding in found}),
    }""",
    "04_guard_explorer.ipynb": """results | {"tried": any("Tried, the plan holds" in line for line in tried)}""",
}


class Executed(dict):
    """Name -> notebook, executed in a new kernel at the first access."""

    def __missing__(self, name):
        parameters = {"BACKEND": QUICK_BACKENDS[name]} if name in QUICK_BACKENDS else {}
        self[name] = execute(name, **parameters)
        return self[name]


def execute(name, **parameters):
    """The notebook, executed, with a cell behind its last one that prints its results as JSON."""
    then = f"import json\nprint(json.dumps({RESULTS[name]}))" if name in RESULTS else ""
    return executor.execute(NOTEBOOKS / name, then, **parameters)


@pytest.fixture(scope="module")
def executed(program_server):
    """The notebooks, executed with this checkout on the path. A failing cell raises an error."""
    return Executed()


def get_outputs(notebook):
    return [output for cell in notebook.cells for output in cell.get("outputs", ())]


def get_printed_text(notebook):
    return "".join(output["text"] for output in get_outputs(notebook) if output["output_type"] == "stream")


def read_last_line(notebook):
    return json.loads(notebook.cells[-1]["outputs"][0]["text"])


def get_figures(notebook):
    return [o["data"][PLOTLY] for o in get_outputs(notebook) if PLOTLY in o.get("data", {})]


@pytest.mark.long("compiles the kernels of 21 graphs and their backward passes; the other tests use a quicker backend")
def test_the_quickstart_runs_with_the_backend_that_it_names():
    notebook = execute("01_quickstart.ipynb")
    runs = read_last_line(notebook)["runs"]
    assert [run["recompiles"] for run in runs] == [5, 4, 3, 2, 1, 0]
    assert runs[-1]["lost_s"] == 0 < runs[0]["lost_s"]
    assert_stored(notebook, NOTEBOOKS / "01_quickstart.ipynb")


@pytest.mark.long("compiles the kernels in each run of the search; the other tests use a quicker backend")
def test_the_tutorial_runs_with_the_backend_that_it_names():
    assert_stored(execute("00_tutorial.ipynb"), NOTEBOOKS / "00_tutorial.ipynb", OF_MACHINE)


#: The lines of the tutorial's patch.
PROVEN = [
    "        torch._dynamo.maybe_mark_dynamic(x, 1)",
    """torch.compiler.config.dynamic_sources = "L['self'].step\"""",
]


@pytest.mark.long("executes a whole notebook")
def test_the_tutorial_proves_the_patch_that_it_applies(executed):
    notebook = executed["00_tutorial.ipynb"]
    fix, applied = (
        next(c for c in notebook.cells if c.source.startswith(start)) for start in ("%compilewatch fix", "torch.")
    )
    printed = "".join(output["text"] for output in fix.outputs if output["output_type"] == "stream")
    assert sorted(re.findall(r"^   \+(?!\+)(.*)$", printed, re.MULTILINE)) == PROVEN
    assert [line for line in PROVEN if line not in applied.source.splitlines()] == []


@pytest.mark.long("runs the tutorial as a script")
def test_the_script_of_the_tutorial_is_its_program_and_has_the_same_patch(program_server, tmp_path):
    script = NOTEBOOKS / "tutorial.py"
    notebook = nbformat.read(NOTEBOOKS / "00_tutorial.ipynb", as_version=4)
    program = next(cell.source for cell in notebook.cells if cell.source.startswith("import time"))
    assert program in script.read_text()
    (tmp_path / "tutorial.py").write_text(script.read_text())
    done = program_server.run("-m", "compilediag", "fix", "--fast", "--json", "tutorial.py", cwd=tmp_path, input="")
    found = json.loads(done.stdout)
    counts = [found["search"][run]["recompiles"] for run in ("before", "after")]
    assert counts == [4, 0], done.stderr
    assert sorted(re.findall(r"^\+(?!\+)(.*)$", found["patch"], re.MULTILINE)) == PROVEN


def test_the_quickstart_finds_five_causes_and_each_fix_removes_one_recompile(executed):
    notebook = executed["01_quickstart.ipynb"]
    results = read_last_line(notebook)
    first, *_, last = runs = results["runs"]
    assert [run["recompiles"] for run in runs] == [5, 4, 3, 2, 1, 0]
    assert sorted(set(first["guards"])) == ["grad_mode", "keep", "self.step", "temperature", "tokens.size()[1]"]
    counter, *others = results["asked"]
    assert counter in ("counter", "module_int")
    # What can be saved decides the order. A version for an argument that is None is expected, so it can come last.
    known = {"float_changes", "grad_mode", "optional_argument", "size_changes"}
    assert {"grad_mode", "size_changes"} <= set(others) <= known and len(others) == 4
    assert last["lost_s"] == 0 < first["lost_s"] < first["compiling_s"]
    assert [run["last_loss"] for run in runs] == pytest.approx([first["last_loss"]] * 6, abs=1e-3)
    (record,) = get_records(notebook)
    for text in record["text/plain"], record["text/html"]:
        assert "5 recompiles" in text and "torch.compiler.config.dynamic_sources" in text
        assert "a watch is running" not in text


def get_records(notebook):
    """What stands for widgets in a saved notebook. The widgets themselves are gone with the kernel."""
    shown = [o["data"] for o in get_outputs(notebook) if "cdiag-record" in o.get("data", {}).get("text/html", "")]
    assert not [data for data in shown if WIDGET in data]
    return shown


def test_the_notebooks_of_recorded_runs_draw_what_they_found(executed):
    autotune, cudagraphs = (executed[name] for name in ("02_autotune.ipynb", "03_cudagraphs.ipynb"))
    results = read_last_line(autotune)
    assert results["choices"] > 5 * results["runs"] > 50
    assert results["failed"] >= 4 and "choices_failed" in results["rules"], "256 x 256 tiles exceed every GPU"
    assert 0 < results["never"] + results["pays"] < results["runs"], "some have no library kernel to compare with"
    assert results["calls"] is None or results["calls"] > 0
    assert len(results["whole"]) == 10, "each function is called tuned and not tuned"
    choices, margins, payoff = get_figures(autotune)
    assert {"triton", "extern"} <= {trace["name"] for trace in choices["data"]}
    assert len(margins["data"]) == 2 and len(payoff["data"]) >= 2
    results = read_last_line(cudagraphs)
    actions = {"record", "rerecord", "skip", "limit", "stuck", "warmup", "replays", "user_capture"}
    assert actions <= set(results["actions"])
    assert {"cudagraph_sizes", "cudagraph_skip", "cudagraph_limit", "cudagraph_stuck"} <= set(results["rules"])
    assert results["functions"] > 5 and results["replays"] > 500
    assert results["least_covered"] == 0.0, "a skipped function never replays"
    drawn, coverage, skips, captures = get_figures(cudagraphs)
    assert [trace["name"] for trace in coverage["data"]] == ["replayed", "captured", "no graph"]
    assert sum(len(figure["data"]) for figure in (drawn, skips, captures)) > 5


#: Program of the explorer notebook -> the expected first rule.
PROGRAMS = {
    "requests": "size_changes",
    "training": "counter",
    "rates": "optimizer_number",
    "epochs": "grad_mode",
    "calls": "fresh_object",
    "decoding": "recompile_limit",
}


@pytest.mark.long("executes a whole notebook")
def test_the_explorer_notebook_fixes_every_program_and_tries_a_plan(executed):
    notebook = executed["04_guard_explorer.ipynb"]
    results = read_last_line(notebook)
    for program, rule in PROGRAMS.items():
        found, fixed = results[program], results[f"{program}_fixed"]
        assert found["recompiles"] >= 2, program
        assert rule in (found["rules"] if program == "epochs" else found["rules"][:1]), program
        assert (fixed["recompiles"], fixed["rules"]) == (0, []), program
    records = get_records(notebook)
    assert len(records) == len(PROGRAMS)
    assert all("recompiles, and the guards that failed in each entry" in record["text/plain"] for record in records)
    assert results["tried"] is True and "the results are the same: True" in get_printed_text(notebook)


@pytest.mark.parametrize("file", ALL, ids=lambda file: file.name)
def test_a_committed_notebook_is_executed_and_small_and_has_no_machine_paths(file):
    notebook = nbformat.read(file, as_version=4)
    counts = [cell.execution_count for cell in notebook.cells if cell.cell_type == "code"]
    assert counts == list(range(1, len(counts) + 1)) and get_printed_text(notebook)
    assert not [o for o in get_outputs(notebook) if o["output_type"] == "error" or WIDGET in o.get("data", {})]
    assert file.stat().st_size < MAX_BYTES and "widgets" not in notebook.metadata
    assert not MACHINE_PATH.findall(json.dumps(get_outputs(notebook), ensure_ascii=False))


def get_words(notebook, varying=VARYING):
    """Cell by cell the words that a run prints or shows as text. Times, and the order that they decide, differ."""
    shown = [
        [output.get("text") or output.get("data", {}).get("text/plain", "") for output in cell.get("outputs", ())]
        for cell in notebook.cells
    ]
    return [sorted({*outputs.normalize(varying.sub("", "\n".join(texts))).split()}) for texts in shown]


def assert_stored(executed, file, varying=VARYING):
    """The outputs that are stored in a notebook are those of a run."""
    words = get_words(nbformat.read(file, as_version=4), varying)
    for number, (stored, now) in enumerate(zip(words, get_words(executed, varying)[: len(words)], strict=True)):
        assert stored == now, f"cell {number}: run python notebooks/execute.py notebooks/{file.name}"


#: What the machine decides: the costs of a plan. Tests skip torch's check of the processor, which is one of them.
OF_MACHINE = re.compile(rf"{VARYING.pattern}|^Where compile time goes:\n(?:.+\n?)+", re.MULTILINE)
#: What another backend decides beside: how many compiles and lookups there are, and its own name.
OF_BACKEND = re.compile(
    rf"{OF_MACHINE.pattern}|^.*BACKEND = .*$|\d+ (?:compiles|cache hits|misses)\b"
    r"|compilediag overhead .*$",
    re.MULTILINE,
)


@pytest.mark.parametrize("file", EXECUTED, ids=lambda file: file.name)
def test_committed_outputs_are_those_of_a_run(executed, file):
    assert_stored(executed[file.name], file, OF_BACKEND if file.name in QUICK_BACKENDS else VARYING)
