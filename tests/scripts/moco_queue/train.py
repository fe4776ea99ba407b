"""Contrastive pretraining with a momentum encoder and a queue of keys that fills during the first steps.

After https://github.com/facebookresearch/moco/pull/100 (a last batch that is smaller than the queue's step) and
https://github.com/pytorch/pytorch/issues/105279 (another length at each step of a training).
"""

import argparse
import copy

import torch
from torch import nn
from torch.nn import functional as F


class Encoder(nn.Module):
    def __init__(self, features, width, out):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(features, width), nn.GELU(), nn.Linear(width, width), nn.GELU())
        self.project = nn.Linear(width, out, bias=False)

    def forward(self, x):
        return F.normalize(self.project(self.body(x)), dim=-1)


class KeyQueue:
    """The last keys, the newest at the end."""

    def __init__(self, capacity, width):
        self.capacity = capacity
        self.keys = torch.zeros(2, width)

    def push(self, keys):
        self.keys = torch.cat([self.keys, keys])[-self.capacity :]


class Dataset(torch.utils.data.Dataset):
    def __init__(self, count, features, seed):
        generator = torch.Generator().manual_seed(seed)
        self.centers = torch.randn(5, features, generator=generator)
        self.labels = torch.randint(0, 5, (count,), generator=generator)
        self.noise = torch.randn(count, features, generator=generator)

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        return self.centers[self.labels[index]] + 0.3 * self.noise[index], self.labels[index]


def augment(x, generator):
    return x + 0.1 * torch.randn(x.shape, generator=generator)


def contrast(query, key, queue, temperature):
    """The loss of each query against its key and the keys of others."""
    positive = (query * key).sum(-1, keepdim=True)
    logits = torch.cat([positive, query @ queue.T], dim=1) / temperature
    return F.cross_entropy(logits, torch.zeros(len(logits), dtype=torch.long))


@torch.no_grad()
def follow(slow, fast, momentum):
    for target, source in zip(slow.parameters(), fast.parameters(), strict=True):
        target.lerp_(source, 1 - momentum)


@torch.no_grad()
def probe(encoder, data):
    """How many have a neighbour of their own kind."""
    x, labels = data.centers[data.labels] + 0.3 * data.noise, data.labels
    z = encoder(x)
    similar = (z @ z.T).fill_diagonal_(-1.0).argmax(1)
    return (labels[similar] == labels).float().mean().item()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch-size", type=int, default=12)
    parser.add_argument("--capacity", type=int, default=40)
    parser.add_argument("--temperature", type=float, default=0.2)
    parser.add_argument("--backend", default="aot_eager")
    args = parser.parse_args()

    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(1)
    data = Dataset(66, 8, seed=2)
    encoder = Encoder(8, 32, 16)
    momentum_encoder = copy.deepcopy(encoder).requires_grad_(False)
    queue = KeyQueue(args.capacity, 16)
    loss_of = torch.compile(contrast, backend=args.backend)
    optimizer = torch.optim.SGD(encoder.parameters(), lr=0.1, momentum=0.9)
    for epoch in range(args.epochs):
        order = torch.Generator().manual_seed(epoch)
        loader = torch.utils.data.DataLoader(data, args.batch_size, shuffle=True, generator=order)
        for x, _ in loader:
            query = encoder(augment(x, generator))
            with torch.no_grad():
                key = momentum_encoder(augment(x, generator))
            loss = loss_of(query, key, queue.keys, args.temperature)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            follow(momentum_encoder, encoder, 0.9)
            queue.push(key)
        print(f"epoch {epoch} loss {loss.item():.4f} queue {len(queue.keys)} probe {probe(encoder, data):.3f}")


if __name__ == "__main__":
    main()
