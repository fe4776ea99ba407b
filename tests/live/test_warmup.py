"""What the next process finds in torch's caches: after a first process, and after a warm-up script's artifacts."""

import pytest

import compilediag as cd
from compilediag.diagnosis.rules.costs import find_repeated_time
from compilediag.errors import CompilediagError
from compilediag.events import CacheLookup, Compile, KernelCompile

#: It goes on until there is a file "stop", so that only an interrupt ends it.
PROGRAM = """
import os, sys, time
import torch

torch.manual_seed(0)
if "--load" in sys.argv:
    with open("warmup.artifacts", "rb") as file:
        torch.compiler.load_cache_artifacts(file.read())
model = torch.nn.Linear(8, 8, bias=False)  # A call of a library, also of its backward: no C++ to compile.
compiled = torch.compile(model)
scaled = torch.compile(lambda x: (x * 2).relu())


class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        return grad * 2


doubled = torch.compile(lambda x: Double.apply(x) + 1)
for rows in (4, 6):
    compiled(torch.randn(rows, 8)).sum().backward()
scaled(torch.randn(3))
if "--custom" in sys.argv:
    doubled(torch.randn(5, requires_grad=True)).sum().backward()
while not os.path.exists("stop"):
    time.sleep(0.05)
"""


@pytest.fixture(scope="module")
def run(program_server, folder):
    """Runs a command of Python in the folder, with the cache folder of that name."""

    def run(*command, cache):
        done = program_server.run(*command, cwd=folder, env={"TORCHINDUCTOR_CACHE_DIR": str(folder / cache)})
        assert done.returncode == 0, done.stderr
        return done

    return run


@pytest.fixture(scope="module")
def record(run, folder):
    """Gives the session of one run of the program."""

    def record(name, *arguments, cache):
        (folder / "stop").touch()
        run("-m", "compilediag", "run", "--quiet", "--save", name, "train.py", *arguments, cache=cache)
        return cd.load(folder / name)

    return record


def list_lookups(session, *caches):
    rows = session.data.rows(CacheLookup)
    return [(row.cache, row.outcome) for row in rows if row.cache in caches and row.action == "look_up"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("warmup")
    (folder / "train.py").write_text(PROGRAM)
    return folder


@pytest.fixture(scope="module")
def first(record):
    return record("first.cdiag", "--custom", cache="shared")


@pytest.mark.long("compiles with Inductor in a second process")
def test_the_next_process_pays_what_the_first_one_predicts(record, first):
    second = record("second.cdiag", "--custom", cache="shared")
    predicted, paid = find_repeated_time(first.data), find_repeated_time(second.data)
    assert len(predicted) == len(paid) == 4
    # What is predicted to be found is found, with its backward; what is predicted to be compiled again is.
    assert [bool(time.uncached) for time in predicted] == [bool(time.uncached) for time in paid]
    assert all(time.loading_s for time in paid if not time.uncached)
    assert [{*time.uncached} for time in predicted] == [{*time.uncached} for time in paid]
    backwards = [row.compile_key for row in second.data.rows(Compile) if row.trigger == "lazy_backward"]
    assert len(backwards) == sum(bool(time.uncached) for time in paid)
    (cost, *_) = first.plan().costs
    assert cost.kind == "next_process" and cost.what.startswith("The next process repeats ")
    assert sum(time.total_s for time in paid) < sum(time.total_s for time in predicted)


def test_a_process_that_loads_the_artifacts_compiles_nothing_from_scratch(run, record, folder):
    session = record("run.cdiag", cache="recorded")
    done = run("-m", "compilediag", "plan", "--warmup", "warmup.py", "run.cdiag", cache="none")
    assert "wrote" in done.stderr
    text = (folder / "warmup.py").read_text()
    assert "TODO" not in text and "python train.py" in text
    (folder / "stop").unlink()  # Now the program never ends by itself.
    done = run("warmup.py", "train.py", cache="warm")
    assert "saved the artifacts of 2 functions" in done.stderr and "not complete" not in done.stderr
    (folder / "stop").touch()
    loaded = record("loaded.cdiag", "--load", cache="empty")
    found = list_lookups(loaded, "fx_graph", "aot_autograd")
    assert found and {outcome for _, outcome in found} == {"hit"}
    assert not [row for row in loaded.data.rows(Compile) if row.trigger == "lazy_backward"]
    assert len(loaded.compiles) < len(session.compiles) or len(session.recompiles) > len(loaded.recompiles)
    # C++ kernels are no part of the artifacts: the warm-up says so, and a shared folder has them.
    assert "torch's artifacts hold no C++ libraries" in done.stderr
    assert any(kernel.outcome == "compiled" for kernel in loaded.data.rows(KernelCompile))
    shared = record("shared.cdiag", "--load", cache="warm")
    assert {kernel.outcome for kernel in shared.data.rows(KernelCompile)} == {"cached"}


#: A server that is warm after two requests, and then gets one of another size.
SERVER = """
import sys
import torch
import compilediag as cd

torch._dynamo.config.caching_precompile = True
if "--load" in sys.argv:
    with open("serve.artifacts", "rb") as file:
        torch.compiler.load_cache_artifacts(file.read())
torch.manual_seed(0)
layer = torch.nn.Linear(8, 8, bias=False)


@torch.compile(dynamic=False)
def answer(x):
    return layer(x)


with torch.no_grad():
    for rows in (4, 6, 6, 9):
        cd.step()
        answer(torch.randn(rows, 8))
"""


@pytest.mark.long("starts a server again and again")
def test_where_torch_also_keeps_what_dynamo_traced_the_next_process_compiles_nothing(program_server, folder):
    (folder / "server.py").write_text(SERVER)
    watch = ("-m", "compilediag", "run", "--quiet", "--warmup-steps", "3", "--save")

    def run(*command, cache):
        return program_server.run(*command, cwd=folder, env={"TORCHINDUCTOR_CACHE_DIR": str(folder / cache)})

    assert run(*watch, "cold.cdiag", "server.py", cache="cold-server").returncode == 0
    incidents = cd.load(folder / "cold.cdiag").incidents
    assert incidents[incidents["part_of"].isna()][["kind", "step"]].values.tolist() == [["recompile", 3]]
    check = ("-m", "compilediag", "check", "--max-after-warmup", "0")
    assert run(*check, "cold.cdiag", cache="none").returncode == 1
    assert run("-m", "compilediag", "plan", "--warmup", "serve.py", "cold.cdiag", cache="none").returncode == 0
    assert "saved the artifacts" in run("serve.py", "server.py", cache="warm-server").stderr
    assert run(*watch, "warm.cdiag", "server.py", "--load", cache="empty-server").returncode == 0
    warm = cd.load(folder / "warm.cdiag")
    assert len(warm.compiles) == len(warm.incidents) == 0 and len(warm.warmup_ends) == 1
    done = run(*check, "warm.cdiag", cache="none")
    assert done.returncode == 0, done.stdout


def test_a_session_that_compiled_nothing_has_no_warmup(tmp_path):
    with cd.watch() as session:
        pass
    with pytest.raises(CompilediagError, match="nothing was compiled"):
        session.warmup(tmp_path / "warmup.py")
