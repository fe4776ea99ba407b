"""The callbacks in real trainings: the numbers reach the trainer's loggers, the report and the sessions are written."""

import csv
import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import compilediag as cd

TRAININGS = Path(__file__).with_name("trainings")
ROOT = TRAININGS.parents[2]
NAMES = {"compilediag/compiles", "compilediag/recompiles", "compilediag/compile_s", "compilediag/lost_s"}
LAUNCHER = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")


def train(program, *arguments, launcher=()):
    """(what the program printed as its result, its standard error)."""
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false", "PYTHONPATH": str(ROOT)}
    command = [sys.executable, *launcher, TRAININGS / program, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=600, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    (result,) = [line for line in done.stdout.splitlines() if line.startswith("RESULT ")]
    return json.loads(result.removeprefix("RESULT ")), done.stderr


def need(*packages):
    for package in packages:
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"not installed: {package}; see `make test-libraries`")


def check_metrics(rows, session):
    """The last row has the numbers of the whole session, and the numbers never fall."""
    counts = [int(float(row["compilediag/compiles"])) for row in rows]
    assert counts == sorted(counts) and counts[-1] == len(session.compiles) > 0
    last = rows[-1]
    assert int(float(last["compilediag/recompiles"])) == len(session.recompiles) > 0
    assert float(last["compilediag/compile_s"]) == pytest.approx(session.compiles["duration_s"].sum())
    assert float(last["compilediag/lost_s"]) == pytest.approx(session.recompiles["lost_s"].sum())


def test_transformers_logs_report_and_plan(tmp_path):
    need("transformers", "accelerate")
    result, errors = train("transformers_training.py", tmp_path)
    session = cd.load(tmp_path / "run.cdiag")
    assert result["session"] == str(session.path) and session.meta["stopped_ns"] is not None
    assert len(result["seen"]) > 3 and all(row.keys() >= NAMES for row in result["seen"])
    check_metrics(result["seen"], session)
    history = [{name: row[name] for name in NAMES} for row in result["history"]]
    assert history == [{name: row[name] for name in NAMES} for row in result["seen"]]
    assert "<title>compilediag: " in (tmp_path / "run.html").read_text()
    assert str(session.plan()) in errors and errors.rstrip().endswith(f"compilediag plan {session.path}")


def test_report_and_session_are_attached_to_the_runs_of_trackers(tmp_path):
    need("transformers", "accelerate", "wandb", "mlflow")
    _, errors = train("transformers_training.py", tmp_path, "--track")
    (attached,) = tmp_path.glob("mlruns/*/*/artifacts/compilediag")
    assert {file.name for file in attached.iterdir()} == {"run.cdiag", "run.html"}
    assert (attached / "run.html").read_bytes() == (tmp_path / "run.html").read_bytes()
    assert cd.load(attached / "run.cdiag").compiles["compile_key"].tolist()
    (run,) = tmp_path.glob("wandb/offline-run-*/*.wandb")
    assert b"compilediag-" in run.read_bytes()
    assert "compilediag: attach" not in errors


def test_transformers_on_two_ranks_has_a_file_per_rank(tmp_path):
    need("transformers", "accelerate")
    result, _ = train("transformers_training.py", tmp_path, launcher=LAUNCHER)
    assert sorted(file.name for file in (tmp_path / "run").iterdir()) == ["rank-0.cdiag", "rank-1.cdiag"]
    own = cd.load(tmp_path / "run" / "rank-0.cdiag")
    check_metrics(result["seen"], own)
    assert set(cd.load(tmp_path / "run").compiles["rank"]) == {0, 1}
    assert (tmp_path / "run.html").exists()


def read_csv(folder):
    with (folder / "log" / "version_0" / "metrics.csv").open() as file:
        rows = list(csv.DictReader(file))
    return rows, [row for row in rows if row.get("compilediag/compiles")]


@pytest.mark.parametrize("name", ["lightning.pytorch", "pytorch_lightning"])
def test_lightning_logs_report_and_plan(tmp_path, name):
    need(name.partition(".")[0])
    _, errors = train("lightning_training.py", name, tmp_path, "1")
    session = cd.load(tmp_path / "run.cdiag")
    rows, ours = read_csv(tmp_path)
    assert len(ours) >= 2 and any(row["train_loss"] for row in rows)
    check_metrics(ours, session)
    assert session.graph_breaks.empty, "logging breaks no graph"
    assert "<title>compilediag: " in (tmp_path / "run.html").read_text()
    assert errors.rstrip().endswith(f"compilediag plan {session.path}")


def test_lightning_on_two_ranks_has_a_file_per_rank(tmp_path):
    need("lightning")
    train("lightning_training.py", "lightning.pytorch", tmp_path, "2", launcher=LAUNCHER)
    assert sorted(file.name for file in (tmp_path / "run").iterdir()) == ["rank-0.cdiag", "rank-1.cdiag"]
    check_metrics(read_csv(tmp_path)[1], cd.load(tmp_path / "run" / "rank-0.cdiag"))
    assert set(cd.load(tmp_path / "run").compiles["rank"]) == {0, 1}


def test_a_training_that_raises_is_reported_too(tmp_path):
    need("lightning")
    result, errors = train("lightning_training.py", "lightning.pytorch", tmp_path, "1", "raise")
    assert result["state"] == "stopped" and (tmp_path / "run.html").exists()
    check_metrics(read_csv(tmp_path)[1], cd.load(tmp_path / "run.cdiag"))
    assert "compilediag plan" in errors


def test_accelerate_logs_in_one_line(tmp_path):
    need("accelerate")
    code = f"""
import json, torch
from tests.libraries.library_worker import define_torchvision_operators
operators = define_torchvision_operators()
from accelerate import Accelerator
from accelerate.tracking import GeneralTracker
import compilediag as cd
from compilediag.integrations import read_metrics

class Tracker(GeneralTracker):
    name, requires_logging_directory, rows = "test", False, []
    tracker = None

    def __init__(self):
        super().__init__()

    def store_init_configuration(self, values):
        pass

    def log(self, values, step=None, **kwargs):
        self.rows.append({{"step": step, **values}})

tracker = Tracker()
accelerator = Accelerator(cpu=True, log_with=[tracker])
accelerator.init_trackers("run")
model = accelerator.prepare(torch.nn.Linear(4, 2))
step = torch.compile(model, backend="eager", dynamic=False)
with cd.watch({str(tmp_path / "run.cdiag")!r}) as session:
    for number in range(3):
        step(torch.ones(number + 2, 4))
        accelerator.log(read_metrics(session), step=number)
print("RESULT", json.dumps(tracker.rows))
"""
    (tmp_path / "program.py").write_text(code)
    rows, _ = train(tmp_path / "program.py")
    assert [row["compilediag/compiles"] for row in rows] == [1, 2, 3]
    check_metrics(rows, cd.load(tmp_path / "run.cdiag"))
