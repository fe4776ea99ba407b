"""Fixes tried on a workload of the GPU: the user's kernels, graphs and weights stay as they are."""

import pytest
import torch

import compilediag


@pytest.mark.parametrize("mode", ["default", "reduce-overhead"])
def test_a_fix_is_tried_beside_the_users_kernels(mode, fresh_inductor_cache):
    torch.manual_seed(0)
    model = torch.nn.Linear(8, 8, device="cuda")
    compiled = torch.compile(model, mode=mode, dynamic=False)

    def work():
        with torch.no_grad():
            return [compiled(torch.ones(n, 8, device="cuda")).clone() for n in (4, 6, 8, 4)]

    with compilediag.watch() as session:
        expected = work()
    finding = next(f for f in session.findings() if f.rule == "size_changes")
    weight, state = model.weight.detach().clone(), torch.cuda.get_rng_state()
    verified = session.verify(finding, work)
    assert verified.holds, verified
    assert (verified.recompiles_before, verified.recompiles_after) == (2, 0)
    assert torch.equal(model.weight, weight) and torch.equal(torch.cuda.get_rng_state(), state)
    with compilediag.watch() as again:
        found = work()
    assert len(again.compiles) == 0
    assert all(torch.allclose(a, b) for a, b in zip(found, expected, strict=True))


def test_a_training_step_on_the_gpu_is_put_back():
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Dropout(0.5), torch.nn.Linear(8, 1)).cuda()
    optimizer = torch.optim.Adam(model.parameters())
    compiled = torch.compile(model, backend="aot_eager", dynamic=False)

    def train():
        for n in (4, 6, 8):
            optimizer.zero_grad()
            compiled(torch.rand(n, 8, device="cuda")).square().mean().backward()
            optimizer.step()

    with compilediag.watch() as session:
        train()
    before = [p.detach().clone() for p in model.parameters()]
    steps = [state["step"].item() for state in optimizer.state.values()]
    verified = session.verify(next(f for f in session.findings() if f.rule == "size_changes"), train)
    assert verified.holds, verified
    assert all(torch.equal(p, b) for p, b in zip(model.parameters(), before, strict=True))
    assert [state["step"].item() for state in optimizer.state.values()] == steps
