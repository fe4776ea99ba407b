"""Fit a factorized table with a small Adafactor of our own."""

from dataclasses import dataclass

import torch

torch.manual_seed(22)


@dataclass
class State:
    """What the optimizer keeps for one matrix."""

    rows: torch.Tensor
    columns: torch.Tensor
    step: int = 0


def new_state(parameter):
    return State(torch.zeros(parameter.shape[0]), torch.zeros(parameter.shape[1]))


@torch.compile(backend="aot_eager")
def update(parameter, gradient, state, rate):
    """One step: the second moment is kept as sums of rows and columns, and decays by the number of the step."""
    state.step += 1
    decay = 1.0 - state.step**-0.8
    squares = gradient.square() + 1e-30
    state.rows.mul_(decay).add_((1 - decay) * squares.mean(1))
    state.columns.mul_(decay).add_((1 - decay) * squares.mean(0))
    scale = (state.rows[:, None] * state.columns / state.rows.mean()).rsqrt()
    change = gradient * scale
    change = change / change.square().mean().sqrt().clamp(min=1.0)
    parameter.sub_(rate * change)


truth = torch.randn(30, 4) @ torch.randn(4, 20)
parameters = [0.1 * torch.randn(30, 4), 0.1 * torch.randn(4, 20)]
states = [new_state(parameter) for parameter in parameters]
for step in range(30):
    left, right = parameters
    error = left @ right - truth
    gradients = [error @ right.T, left.T @ error]
    for parameter, gradient, state in zip(parameters, gradients, states):
        update(parameter, gradient, state, 0.05)
print(f"result: {error.square().mean().item():.5f} {parameters[0].norm().item():.5f}")
