"""Fit a model of energies in bfloat16; the loss is computed in float32 in the same compiled function.

After https://github.com/pytorch/pytorch/issues/191106 (a graph that enters autocast is not cached) and
https://github.com/pytorch/pytorch/pull/192555 (a model that enters autocast in its forward).
"""

import argparse
import math

import torch
from torch import nn
from torch.nn import functional as F


class RadialBasis(nn.Module):
    """Gaussians of distances."""

    def __init__(self, count, cutoff):
        super().__init__()
        self.register_buffer("centers", torch.linspace(0.0, cutoff, count))
        self.width = cutoff / count

    def forward(self, distances):
        return torch.exp(-(((distances[..., None] - self.centers) / self.width) ** 2))


class EnergyModel(nn.Module):
    """The energy of a cluster of atoms, from the distances of all pairs."""

    def __init__(self, kinds, width=24, bases=12, cutoff=4.0):
        super().__init__()
        self.embed = nn.Embedding(kinds, width)
        self.basis = RadialBasis(bases, cutoff)
        self.filter = nn.Linear(bases, width)
        self.update = nn.Sequential(nn.Linear(width, width), nn.SiLU(), nn.Linear(width, width))
        self.head = nn.Linear(width, 1)

    def forward(self, kinds, positions):
        distances = (positions[:, :, None] - positions[:, None]).square().sum(-1).add(1e-6).sqrt()
        nodes = self.embed(kinds)
        messages = (self.filter(self.basis(distances)) * nodes[:, None]).mean(2)
        return self.head(nodes + self.update(messages)).sum((1, 2))


@torch.compile
def energy_loss(model, kinds, positions, energies, weight):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        predicted = model(kinds, positions)
    error = predicted.float() - energies
    return F.huber_loss(error, torch.zeros_like(error)) + weight * error.mean().square()


class Clusters:
    """Random clusters with a pair potential."""

    def __init__(self, count, atoms, kinds, seed):
        generator = torch.Generator().manual_seed(seed)
        self.kinds = torch.randint(kinds, (count, atoms), generator=generator)
        self.positions = 2 * torch.randn(count, atoms, 3, generator=generator)
        distances = torch.cdist(self.positions, self.positions)
        charges = self.kinds.float() - (kinds - 1) / 2
        pairs = charges[:, :, None] * charges[:, None] * torch.exp(-distances)
        self.energies = pairs.sum((1, 2)) / atoms

    def batches(self, size, epoch):
        order = torch.randperm(len(self.energies), generator=torch.Generator().manual_seed(epoch))
        for chosen in order.split(size):
            yield self.kinds[chosen], self.positions[chosen], self.energies[chosen]


def learning_rate(step, total, peak):
    return peak * 0.5 * (1 + math.cos(math.pi * step / total))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--atoms", type=int, default=6)
    parser.add_argument("--lr", type=float, default=1e-2)
    parser.add_argument("--mean-weight", type=float, default=0.1)
    args = parser.parse_args()

    torch.manual_seed(0)
    train = Clusters(48, args.atoms, 3, seed=1)
    model = EnergyModel(3)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr, weight_decay=1e-4)
    steps = args.epochs * len(train.energies) // args.batch_size
    step = 0
    for epoch in range(args.epochs):
        losses = []
        for kinds, positions, energies in train.batches(args.batch_size, epoch):
            for group in optimizer.param_groups:
                group["lr"] = learning_rate(step, steps, args.lr)
            loss = energy_loss(model, kinds, positions, energies, args.mean_weight)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            losses.append(loss.item())
            step += 1
        print(f"epoch {epoch} loss {sum(losses) / len(losses):.2f}")


if __name__ == "__main__":
    main()
