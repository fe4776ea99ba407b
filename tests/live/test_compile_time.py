"""What is recorded for the costs of a plan: identical blocks, backwards that never run, the program that runs."""

from dataclasses import replace

import pytest
import torch
from torch import nn

import compilediag as cd
from compilediag.diagnosis.rules import costs
from compilediag.events import Compile, Phase


class Block(nn.Module):
    def __init__(self, size=8):
        super().__init__()
        self.norm, self.linear = nn.LayerNorm(size), nn.Linear(size, size)

    def forward(self, x):
        return x + torch.relu(self.linear(self.norm(x))) * 2


class Model(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        self.layers = nn.ModuleList(Block(size) for size in sizes)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x[..., : layer.norm.normalized_shape[0]])
        return x.sum()


MODEL = Model([8])


def compile_model(sizes, needs_grad=False, dynamic=None, detail="lean"):
    """The session in which a model with blocks of these sizes was compiled."""
    model = Model(sizes)
    with cd.watch(detail=detail) as session, torch.set_grad_enabled(needs_grad):
        torch.compile(model, backend="aot_eager", dynamic=dynamic)(torch.randn(5, sizes[0]))
    return session


def get_blocks(session):
    return next(row.blocks for row in session.data.rows(Compile))


@pytest.mark.parametrize("detail", ["lean", "full"])
def test_identical_blocks_of_a_graph_are_recorded(detail):
    blocks = get_blocks(compile_model([8] * 3, detail=detail))
    assert (blocks["class"], blocks["module"]) == ("Block", Block.__module__)
    assert (blocks["path"], blocks["count"]) == ("L['self'].layers.0", 3)
    assert 3 * blocks["ops"] < blocks["graph_ops"] <= 3 * blocks["ops"] + 5


def test_blocks_of_other_sizes_are_not_identical():
    assert get_blocks(compile_model([8, 6, 4])) is None


def test_blocks_with_a_dynamic_size_are_identical_and_need_no_guards_of_ours():
    session = compile_model([8] * 3, dynamic=True)
    assert get_blocks(session)["count"] == 3
    assert len(session.recompiles) == 0 and not [row for row in session.status() if row["status"] == "failed"]


def test_a_backward_that_never_ran_is_seen_and_one_that_ran_is_not(monkeypatch):
    # The model is small, so that its seconds are not worth a report.
    monkeypatch.setattr(costs, "UNUSED_BACKWARD", replace(costs.UNUSED_BACKWARD, worth_s=0.0))
    monkeypatch.setattr(costs, "BACKENDS", ("aot_eager",))
    compiled = torch.compile(Model([8]), backend="aot_eager", dynamic=False)
    with cd.watch() as unused:
        loss = compiled(torch.randn(5, 8))
    with cd.watch() as inference, torch.no_grad():
        compiled(torch.randn(5, 8))
    loss.backward()
    with cd.watch() as used:
        compiled(torch.randn(6, 8)).backward()
    found = [costs.find_unused_backwards(session.data) for session in (unused, inference, used)]
    assert [[cost.kind for cost in one] for one in found[:2]] == [["unused_backward"], []]
    assert found[2] == []
    assert found[0][0].seconds > 0


def test_compiling_each_block_as_printed_compiles_one_of_them(monkeypatch):
    monkeypatch.setattr(costs, "REPEATED_BLOCKS", replace(costs.REPEATED_BLOCKS, worth_s=0.0))
    monkeypatch.setitem(torch.compile.__kwdefaults__, "backend", "aot_eager")
    torch._dynamo.reset()
    model, x = Model([8] * 6), torch.randn(5, 8)
    with cd.watch() as whole, torch.no_grad():
        before = torch.compile(model)(x)
    (cost,) = costs.find_repeated_blocks(whole.data)
    torch._dynamo.reset()
    exec(cost.code, {"model": model})
    with cd.watch() as regional, torch.no_grad():
        after = model(x)
    assert torch.equal(before, after)
    graphs = [[row.graph_ops for row in session.data.rows(Compile)] for session in (whole, regional)]
    assert [len(ops) for ops in graphs] == [1, 1]
    assert graphs[1][0] < graphs[0][0] / 5
    assert costs.find_repeated_blocks(regional.data) == []


#: Ends as soon as torch begins to build a program that finds out what the CPU can do; the builds take seconds.
CHECKS = """
import sys, torch
from torch._inductor import cpu_vec_isa
cpu_vec_isa.VecISA.check_build = lambda isa, code: code == cpu_vec_isa.VecISA._avx_code and sys.exit("it checks")
print(bool(cpu_vec_isa.valid_vec_isa_list()))
"""


@pytest.mark.long("the check of the CPU itself, in a process of its own")
def test_the_check_of_the_cpu_is_skipped_with_the_variable_that_is_printed(python, monkeypatch):
    monkeypatch.delenv("TORCHINDUCTOR_VEC_ISA_OK", raising=False)
    before = python("-c", CHECKS)
    if before.stderr.strip() != "it checks":
        pytest.skip(f"this CPU or this version of torch has no such check: {before.stdout} {before.stderr[-200:]}")
    after = python("-c", f"import os\n{costs.SKIP_CPU_CHECK}\n{CHECKS}")
    assert after.stdout.split() == ["True"], after.stderr


def test_without_gradients_no_backward_is_prepared():
    def prepare(mode):
        torch._dynamo.reset()
        with cd.watch() as session, mode():
            result = torch.compile(MODEL, backend="aot_eager")(torch.ones(5, 8))
        phases = {row.name for row in session.data.rows(Phase)}
        return result.detach(), costs.JOINT in phases

    (result, is_prepared), *others = [
        prepare(mode) for mode in (torch.enable_grad, torch.no_grad, torch.inference_mode)
    ]
    assert is_prepared and [prepared for _, prepared in others] == [False, False]
    assert all(torch.equal(result, other) for other, _ in others)


def test_a_backend_without_a_cache_is_paid_whole_by_the_next_process():
    (time,) = costs.find_repeated_time(compile_model([8]).data)
    assert list(time.uncached) == ['the backend "aot_eager" has no cache'] and time.again_s == pytest.approx(
        time.total_s
    )


def test_a_session_knows_the_program_that_it_ran_in(program_server, tmp_path):
    script = tmp_path / "train.py"
    script.write_text("import compilediag as cd\nwith cd.watch('run.cdiag'):\n    pass\n")
    done = program_server.run(script, "--epochs", "3", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    program = cd.load(tmp_path / "run.cdiag").meta["program"]
    assert (program["script"], program["arguments"]) == (str(script), ["--epochs", "3"])
