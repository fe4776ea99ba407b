"""Decode tokens with a cache of keys and values of a fixed size."""

import torch
from torch import nn

torch.manual_seed(8)


class Cache(nn.Module):
    def __init__(self, longest, width):
        super().__init__()
        self.register_buffer("keys", torch.zeros(1, longest, width))
        self.register_buffer("values", torch.zeros(1, longest, width))
        self.register_buffer("steps", torch.arange(longest))
        self.size = 0

    def forward(self, key, value):
        self.keys[:, self.size] = key
        self.values[:, self.size] = value
        seen = self.steps <= self.size
        self.size += 1
        return self.keys, self.values, seen


class Decoder(nn.Module):
    def __init__(self, width=16, longest=24):
        super().__init__()
        self.qkv = nn.Linear(width, 3 * width)
        self.cache = Cache(longest, width)

    def forward(self, x):
        query, key, value = self.qkv(x).chunk(3, -1)
        keys, values, seen = self.cache(key, value)
        scores = (keys @ query.unsqueeze(-1)).squeeze(-1).masked_fill(~seen, float("-inf"))
        return (torch.softmax(scores, -1).unsqueeze(1) @ values).squeeze(1)


decoder = torch.compile(Decoder(), backend="aot_eager")
with torch.no_grad():
    x = torch.randn(1, 16)
    for _ in range(14):
        x = x + decoder(x)
print(f"result: {x.square().sum():.5f} {x.mean():.5f}")
