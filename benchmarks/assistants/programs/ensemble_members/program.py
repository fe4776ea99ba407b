"""Average the members of an ensemble; each has a hidden layer of another width."""

import torch
from torch import nn

torch.manual_seed(51)
members = [nn.ModuleList([nn.Linear(8, width), nn.Linear(width, 2)]) for width in (16, 24, 32, 40, 48)]


@torch.compile(backend="aot_eager")
def activate(x, first):
    hidden = first(x)
    hidden = torch.tanh(hidden) * torch.sigmoid(hidden)
    return hidden / (1 + hidden.square().mean(-1, keepdim=True)).sqrt()


x = torch.randn(20, 8)
with torch.no_grad():
    outputs = [second(activate(x, first)) for first, second in members]
print(f"result: {torch.stack(outputs).mean(0).square().sum():.5f}")
