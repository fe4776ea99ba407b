"""Forecast a chaotic series with an echo state network: a fixed recurrent reservoir and a linear readout.

After https://github.com/El3ssar/ResDAG/issues/39 (the loop over time is unrolled: 91 s for 500 steps) and
https://github.com/pytorch/pytorch/issues/111441 (compiling a simple loop takes 34 s).
"""

import argparse
from typing import NamedTuple

import torch


class Reservoir(NamedTuple):
    """The weights of a reservoir, which are not trained, and how fast its state leaks."""

    inputs: torch.Tensor
    recurrent: torch.Tensor
    bias: torch.Tensor
    leak: torch.Tensor


def make_reservoir(units, features, radius, seed):
    generator = torch.Generator().manual_seed(seed)
    recurrent = torch.randn(units, units, generator=generator)
    recurrent *= (torch.rand(units, units, generator=generator) < 0.2).float()
    largest = torch.linalg.eigvals(recurrent).abs().max()
    return Reservoir(
        torch.rand(features, units, generator=generator) - 0.5,
        recurrent * (radius / largest),
        0.1 * torch.randn(units, generator=generator),
        torch.linspace(0.3, 0.9, units),
    )


def update(reservoir, state, value):
    """One step: the state leaks, and takes the new value in."""
    drive = value @ reservoir.inputs + state @ reservoir.recurrent + reservoir.bias
    drive = torch.tanh(drive)
    gate = torch.sigmoid(4 * (drive - drive.mean(-1, keepdim=True)))
    return (1 - reservoir.leak) * state + reservoir.leak * drive * gate


@torch.compile(backend="aot_eager")
def run_reservoir(reservoir, series, state):
    """The states for a batch of series, and the last state."""
    states = []
    for value in series.unbind(1):
        state = update(reservoir, state, value)
        states.append(state)
    return torch.stack(states, dim=1), state


def make_series(count, length, seed):
    """Logistic maps with a slow drift of their parameter."""
    x = 0.1 + 0.8 * torch.rand(count, generator=torch.Generator().manual_seed(seed))
    values = []
    for step in range(length):
        x = (3.7 + 0.2 * step / length) * x * (1 - x)
        values.append(x)
    return torch.stack(values, dim=1).unsqueeze(-1)


def fit_readout(states, targets, ridge):
    """The weights of a ridge regression, with a constant."""
    flat = torch.cat([states.flatten(0, 1), torch.ones(states[..., :1].flatten(0, 1).shape)], dim=1)
    gram = flat.T @ flat + ridge * torch.eye(flat.shape[1])
    return torch.linalg.solve(gram, flat.T @ targets.flatten(0, 1))


def predict(weights, states):
    return states @ weights[:-1] + weights[-1]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--units", type=int, default=32)
    parser.add_argument("--length", type=int, default=60)
    parser.add_argument("--washout", type=int, default=10)
    parser.add_argument("--ridge", type=float, default=1e-2)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()

    torch.manual_seed(0)
    reservoir = make_reservoir(args.units, 1, radius=0.8, seed=7)
    for number in range(args.rounds):
        series = make_series(6, args.length + 1, seed=number)
        start = torch.zeros(6, args.units)
        states, last = run_reservoir(reservoir, series[:, :-1], start)
        kept, targets = states[:, args.washout :], series[:, args.washout + 1 :]
        weights = fit_readout(kept, targets, args.ridge)
        train = (predict(weights, kept) - targets).square().mean()
        seen = make_series(6, args.length // 2 + 1, seed=50 + number)
        others, _ = run_reservoir(reservoir, seen[:, :-1], last)
        test = (predict(weights, others)[:, -1] - seen[:, -1]).abs().mean()
        print(f"round {number} train {train.item():.5f} test {test.item():.4f}")


if __name__ == "__main__":
    main()
