"""A model of 12 blocks with 4 heads each: Dynamo traces `attend` 48 times."""

import torch
from torch import nn


def attend(q, k, v, mask):
    scores = (q @ k.transpose(-2, -1)) / q.shape[-1] ** 0.5
    scores = scores.masked_fill(mask, float("-inf"))
    weights = scores - scores.amax(-1, keepdim=True).detach()
    weights = weights.exp()
    return (weights / weights.sum(-1, keepdim=True)) @ v


class Block(nn.Module):
    def __init__(self, size, heads):
        super().__init__()
        self.heads = heads
        self.norm = nn.LayerNorm(size)
        self.qkv = nn.Linear(size, 3 * size)
        self.out = nn.Linear(size, size)

    def forward(self, x, mask):
        parts = self.qkv(self.norm(x)).chunk(3 * self.heads, -1)
        heads = [attend(*parts[h :: self.heads], mask) for h in range(self.heads)]
        return x + self.out(torch.cat(heads, -1))


class Model(nn.Module):
    def __init__(self, size=32, heads=4, depth=12):
        super().__init__()
        self.blocks = nn.ModuleList(Block(size, heads) for _ in range(depth))

    def forward(self, x):
        mask = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)
        for block in self.blocks:
            x = block(x, mask)
        return x


model = torch.compile(Model(), backend="aot_eager")
model(torch.randn(2, 16, 32))
