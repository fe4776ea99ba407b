"""A policy that attends over all states of the episode so far."""

import torch
from torch import nn

torch.manual_seed(42)


class Policy(nn.Module):
    def __init__(self, width=12):
        super().__init__()
        self.key, self.value = nn.Linear(width, width), nn.Linear(width, 3)

    def forward(self, states):
        keys = self.key(states)
        weights = torch.softmax(keys @ keys[-1], 0)
        return torch.tanh(weights @ self.value(states))


policy = torch.compile(Policy(), backend="aot_eager")
states = torch.randn(3, 12)
with torch.no_grad():
    for _ in range(12):
        action = policy(states)
        following = torch.roll(states[-1], 1) + action.sum()
        states = torch.cat([states, following[None]])
print(f"result: {states.abs().sum():.3f}")
