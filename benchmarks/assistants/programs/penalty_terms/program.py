"""Minimize an energy with a penalty that gets stronger."""

import torch

torch.manual_seed(29)
matrix = torch.randn(12, 12)
matrix = matrix @ matrix.T / 12


@torch.compile(backend="aot_eager")
def gradient(x, penalty):
    return matrix @ x + penalty(x)


x = torch.randn(12)
for step in range(12):
    weight = 0.1 * step
    x = x - 0.1 * gradient(x, lambda x: weight * x * (x.square() > 1))
print(f"result: {x.square().sum():.5f}")
