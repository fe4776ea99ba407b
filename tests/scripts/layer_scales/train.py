"""Train a deep network whose blocks are compiled one by one (regional compilation) and know their own index.

After https://github.com/pytorch/pytorch/issues/128071 (one compile per `layer_idx`) and
https://github.com/pytorch/pytorch/pull/171598 (attributes of many instances of one module).
"""

import argparse
import math

import torch
from torch import nn
from torch.nn import functional as F


class Mixer(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.gate = nn.Linear(width, width)
        self.value = nn.Linear(width, width)

    def forward(self, x):
        return torch.sigmoid(self.gate(x)) * self.value(x)


class Block(nn.Module):
    """A residual block whose branch is scaled by its depth, and that is skipped less often near the input."""

    def __init__(self, width, layer_idx, depth, skip=0.2):
        super().__init__()
        self.layer_idx = layer_idx
        self.keep = 1 - skip * layer_idx / max(1, depth - 1)
        self.norm = nn.LayerNorm(width)
        self.mixer = Mixer(width)
        self.mlp = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))

    def forward(self, x, keep):
        scale = 1 / math.sqrt(2 * self.layer_idx + 2)
        h = self.norm(x)
        return x + scale * keep * (self.mixer(h) + self.mlp(h))


class Network(nn.Module):
    def __init__(self, inputs, width, depth, classes):
        super().__init__()
        self.embed = nn.Linear(inputs, width)
        self.blocks = nn.ModuleList(Block(width, i, depth) for i in range(depth))
        self.head = nn.Linear(width, classes)

    def forward(self, x):
        x = self.embed(x)
        for block in self.blocks:
            keep = (torch.rand(len(x), 1) < block.keep).float() / block.keep if self.training else torch.ones(len(x), 1)
            x = block(x, keep)
        return self.head(x)


def count_parameters(model):
    return sum(p.numel() for p in model.parameters() if p.requires_grad)


def make_optimizer(model, lr):
    decayed = [p for p in model.parameters() if p.ndim > 1]
    others = [p for p in model.parameters() if p.ndim <= 1]
    groups = [{"params": decayed, "weight_decay": 0.05}, {"params": others, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=lr)


def make_data(count):
    generator = torch.Generator().manual_seed(7)
    x = torch.randn(count, 12, generator=generator)
    return x, (x[:, 0] * x[:, 1] > 0).long() + (x[:, 2] > 0.5).long()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--depth", type=int, default=6)
    parser.add_argument("--batch-size", type=int, default=24)
    parser.add_argument("--lr", type=float, default=5e-3)
    args = parser.parse_args()

    torch.manual_seed(0)
    x, y = make_data(96)
    model = Network(x.shape[1], width=20, depth=args.depth, classes=3)
    for block in model.blocks:
        block.compile(backend="aot_eager")
    optimizer = make_optimizer(model, args.lr)
    print(f"{count_parameters(model)} parameters in {args.depth} blocks")

    for epoch in range(args.epochs):
        total = 0.0
        for batch in torch.randperm(len(x), generator=torch.Generator().manual_seed(epoch)).split(args.batch_size):
            loss = F.cross_entropy(model(x[batch]), y[batch], label_smoothing=0.05)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(batch)
        print(f"epoch {epoch} loss {total / len(x):.4f}")


if __name__ == "__main__":
    main()
