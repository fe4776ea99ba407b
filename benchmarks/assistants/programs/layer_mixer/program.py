"""A stack of mixers in which deeper layers mix less."""

import torch
from torch import nn

torch.manual_seed(25)


class Mixer(nn.Module):
    def __init__(self, width, layer_idx):
        super().__init__()
        self.linear = nn.Linear(width, width)
        self.layer_idx = layer_idx

    def forward(self, x):
        share = 1.0 / (1 + self.layer_idx[0])
        return x + share * torch.tanh(self.linear(x))


layers = [Mixer(24, (index, "mixer")) for index in range(7)]
for layer in layers:
    layer.compile(backend="aot_eager")
with torch.no_grad():
    x = torch.randn(12, 24)
    for layer in layers:
        x = layer(x)
print(f"result: {x.square().sum():.4f}")
