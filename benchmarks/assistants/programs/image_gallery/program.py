"""Embed pictures with a small convolutional network."""

import torch
from torch import nn

torch.manual_seed(41)


class Block(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, 3, padding=1)
        self.norm = nn.GroupNorm(2, channels)

    def forward(self, x):
        y = self.norm(self.conv(x))
        print("block", tuple(y.shape))
        return torch.relu(x + y)


net = nn.Sequential(nn.Conv2d(3, 8, 3, 2), Block(8), Block(8), nn.AdaptiveAvgPool2d(1), nn.Flatten())
compiled = torch.compile(net, backend="aot_eager")
with torch.no_grad():
    total = sum(compiled(torch.rand(2, 3, 32, 32)).sum().item() for _ in range(3))
print(f"result: {total:.5f}")
