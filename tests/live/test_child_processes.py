"""`compilediag run` records the processes that the program starts, in whatever way, and changes nothing for them."""

import os
import time

import pytest

import compilediag as cd

#: Each process compiles a function of its own name, and prints what the program can see.
PROGRAM = """
import concurrent.futures, multiprocessing, os, subprocess, sys
import torch
import torch.multiprocessing

def compile_as(name):
    def function(x, n):
        return x + len(n)
    function.__code__ = function.__code__.replace(co_name=name)
    f = torch.compile(function, backend="eager")
    return [f(torch.ones(2), "n" * n).tolist() for n in range(2)]

def work(rank):
    compile_as(f"rank{rank}")

class Sizes(torch.utils.data.Dataset):
    def __len__(self):
        return 2
    def __getitem__(self, index):
        return torch.tensor(compile_as("loaded"))

def start_all():
    torch.multiprocessing.spawn(work, nprocs=2)
    for method in ("spawn", "forkserver"):
        context = multiprocessing.get_context(method)
        with concurrent.futures.ProcessPoolExecutor(1, mp_context=context) as pool:
            assert pool.submit(compile_as, f"pool_{method}").result() == [[1.0, 1.0], [2.0, 2.0]]
    loader = torch.utils.data.DataLoader(Sizes(), num_workers=1, multiprocessing_context="spawn")
    assert [batch.shape for batch in loader] == [(1, 2, 2)] * 2

if __name__ == "__main__":
    if os.environ.get("COMPILEDIAG_PARENT"):
        start_all()
    for command in sys.argv[1:]:
        done = subprocess.run([sys.executable, *command.split()], capture_output=True, text=True)
        print(command, done.returncode, done.stdout, done.stderr)
"""
COMMAND = """
import os, sys
import torch
import torch._inductor.test_operators  # imports torch._dynamo while it is itself imported
print(sys.argv[1:], sys.path[1:], sys.modules["sitecustomize"].OWN, "torch._dynamo" in sys.modules)
@torch.compile(backend="eager")
def commanded(x):
    return x + 1
commanded(torch.ones(2))
sys.exit(3)
"""
#: The program's own module of this name. It shows in the output of the commands that the end of a process is its own.
OWN = """
import atexit, sys

OWN = __file__

@atexit.register
def end():
    if sys.argv[0] == "command.py":
        print("own end")
"""
NO_TORCH = """
import sys
print([name for name in sys.modules if "compilediag" in name], sys.meta_path[-1].__name__)
"""


CHILDREN = pytest.mark.long("two runs of a program whose many processes import torch")


@pytest.fixture(scope="module")
def recorded(program_server, tmp_path_factory):
    """What commands that the program starts printed by itself and under `compilediag run`, and the sessions."""
    folder = tmp_path_factory.mktemp("children")
    for name, text in {"program.py": PROGRAM, "command.py": COMMAND, "no_torch.py": NO_TORCH}.items():
        (folder / name).write_text(text)
    own = folder / "own"
    own.mkdir()
    (own / "sitecustomize.py").write_text(OWN)
    commands = ("command.py a b", "-m compilediag run --quiet --save nested.cdiag command.py", "no_torch.py")
    env = {"CUDA_VISIBLE_DEVICES": "", "PYTHONPATH": os.pathsep.join((str(own), os.environ["PYTHONPATH"]))}
    runs = []
    for start in (["program.py"], ["-m", "compilediag", "run", "--save", "run.cdiag", "program.py"]):
        runs.append(program_server.run(*start, *commands, cwd=folder, env=env))
        assert runs[-1].returncode == 0, runs[-1].stderr
    return runs[0].stdout, runs[1].stdout, cd.load(folder / "run.cdiag"), cd.load(folder / "nested.cdiag")


@CHILDREN
def test_every_process_is_in_the_session(recorded):
    _, _, session, _ = recorded
    counts = session.compiles.groupby("function")["pid"].agg(["size", "nunique"])
    names = ["rank0", "rank1", "pool_spawn", "pool_forkserver"]
    assert counts.loc[names].values.tolist() == [[2, 1]] * 4
    assert counts.loc["loaded", "size"] >= 2
    assert counts.loc["commanded", "size"] == 1
    assert session.recompiles["function"].value_counts()[names].tolist() == [1] * 4
    assert not {"failed", "unavailable"} & set(session.sources["status"])


@CHILDREN
def test_the_processes_see_what_they_see_without_it(recorded):
    alone, under_run, _, _ = recorded
    assert under_run == alone
    assert "own end" in alone and "sitecustomize.py True" in alone


@CHILDREN
def test_a_session_of_its_own_that_the_program_records_stays_its_own(recorded):
    *_, nested = recorded
    assert nested.compiles["function"].tolist() == ["commanded"]
    assert nested.meta["pid"] == nested.compiles["pid"].iloc[0]


def test_a_process_that_compiles_after_the_recording_leaves_the_session_as_it_is(program_server, tmp_path):
    (tmp_path / "late.py").write_text(
        "import sys\nsys.stdin.read()\nimport torch\n"
        "torch.compile(lambda x: x + 1, backend='eager')(torch.ones(2))\nprint('compiled', flush=True)\n"
    )
    (tmp_path / "program.py").write_text(
        "import subprocess, sys\n"
        "subprocess.Popen([sys.executable, 'late.py'], stdin=subprocess.PIPE, stdout=open('late.txt', 'w'))\n"
    )
    done = program_server.run("-m", "compilediag", "run", "--save", "run.cdiag", "program.py", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    before = (tmp_path / "run.cdiag").read_bytes()
    end = time.monotonic() + 300
    while (tmp_path / "late.txt").read_text() != "compiled\n":
        assert time.monotonic() < end, "the process that is left does not compile"
        time.sleep(0.01)
    assert (tmp_path / "run.cdiag").read_bytes() == before
    assert len(cd.load(tmp_path / "run.cdiag").compiles) == 0


@pytest.mark.long("two runs of a launcher, whose ranks import torch")
def test_the_ranks_of_a_launcher_are_in_the_session(program_server, tmp_path):
    (tmp_path / "rank.py").write_text(
        "import os, torch\n"
        "f = torch.compile(lambda x, n: x + len(n), backend='eager')\n"
        "for n in range(2 + int(os.environ['RANK'])):\n"
        "    f(torch.ones(2), 'n' * n)\n"
    )
    launch = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "rank.py")
    for save in ("run.cdiag", "folder/"):
        done = program_server.run("-m", "compilediag", "run", "--save", save, *launch, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        session = cd.load(tmp_path / save)
        assert session.compiles.groupby("rank").size().to_dict() == {0: 2, 1: 3}
        assert session.recompiles.groupby("rank").size().to_dict() == {0: 1, 1: 2}
    assert {file.name for file in (tmp_path / "folder").iterdir()} >= {"rank-0.cdiag", "rank-1.cdiag"}
