"""At the second call of a script for an issue, the guard of the recompile fails again."""

import zlib
from collections import Counter

import pytest

from compilediag.errors import CompilediagError
from tests import inside
from tests.advice.known_programs import load_programs
from tests.advice.runs import Worker, run_original
from tests.unit.session_builder import saved
from tests.unit.tables_builder import recompile

WORKER = "tests.advice.worker"
#: About one of so many programs; with 1, all of them.
EVERY = 8
#: What was reproduced of these programs.
REPRODUCED = 30


def is_chosen(name):
    """True for the same programs also when others are added."""
    return zlib.crc32(name.encode()) % EVERY == 0


@pytest.fixture
def worker():
    """A worker of its own: the scripts change what torch logs."""
    worker = Worker(WORKER)
    yield worker
    worker.stop()


@pytest.mark.long("runs a script for each recompile of many programs")
def test_the_same_guard_fails(worker, tmp_path):
    programs = [program for program in load_programs() if program.worker == WORKER and is_chosen(program.name)]
    counts, wrong = Counter(), []
    for program in programs:
        rows = {
            (row["kind"], row["source"]): recompile(row["source"], row["kind"], row["expected"], row["actual"])
            for row in reversed(run_original(program)["recompiles"])
        }
        for guard, row in rows.items():
            folder = tmp_path / f"{program.name}{counts.total()}"
            folder.mkdir()
            try:
                text = saved(folder, row).repro()
            except CompilediagError:
                counts["refused"] += 1
                continue
            (folder / "repro.py").write_text(text)
            run = worker.run(folder / "repro.py", "eager")
            found = [(again["kind"], again["source"]) for again in run.get("recompiles", ())]
            counts["reproduced"] += found == [guard]
            if found != [guard]:
                wrong.append((program.name, guard, found, run.get("error")))
    print(counts)
    assert wrong == [] and counts["reproduced"] >= REPRODUCED


def test_the_command_runs_the_script(tmp_path, capsys):
    session = saved(tmp_path, recompile("self.n['k'][1]", "value", "1", "2"))
    script = tmp_path / "repro.py"
    assert inside.main(["repro", str(session.path), "-o", str(script), "--run"]) == 0
    assert script.read_text() == session.repro() and capsys.readouterr().out
