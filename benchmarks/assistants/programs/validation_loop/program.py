"""Scores of samples before and after they are moved along a gradient; the score is compiled."""

import torch
from torch import nn

torch.manual_seed(26)
net = nn.Sequential(nn.Linear(10, 32), nn.Tanh(), nn.Linear(32, 1))


@torch.compile(backend="aot_eager")
def score(x):
    return torch.sigmoid(net(x)).squeeze(-1)


samples = torch.randn(64, 10, requires_grad=True)
with torch.no_grad():
    first = score(samples)
    shifted = samples + 0.1
    second = score(shifted)
    third = score(samples * 0.5)
print(f"result: {first.mean():.5f} {second.mean():.5f} {third.mean():.5f}")
