"""Evaluate a model in reduced precision, and preview some rows."""

import torch
from torch import nn

torch.manual_seed(50)
net = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 5))
compiled = torch.compile(net, backend="aot_eager")
rows = torch.randn(64, 32)


@torch.no_grad()
def evaluate():
    with torch.autocast("cpu", torch.bfloat16):
        return compiled(rows).float().argmax(-1).sum().item()


@torch.no_grad()
def preview():
    return compiled(rows).argmax(-1).sum().item()


total = sum(evaluate() for _ in range(2))
shown = preview()
print(f"result: {total} {shown > 0}")
