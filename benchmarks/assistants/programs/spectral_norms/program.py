"""Orthogonalized updates of the matrices of a model."""

import torch
from torch import nn

torch.manual_seed(7)
widths = [12, 20, 28, 36, 44, 52, 60, 68, 76, 84, 92]
layers = nn.ModuleList(nn.Linear(a, b, bias=False) for a, b in zip(widths, widths[1:]))


@torch.compile(backend="aot_eager")
def orthogonalize(matrix):
    matrix = matrix / matrix.norm()
    for _ in range(4):
        gram = matrix @ matrix.mT
        matrix = 1.5 * matrix - 0.5 * gram @ matrix
    return matrix


@torch.no_grad()
def step():
    for layer in layers:
        layer.weight.sub_(0.1 * orthogonalize(layer.weight))


for _ in range(2):
    step()
print("result:", f"{sum(layer.weight.square().sum().item() for layer in layers):.3f}")
