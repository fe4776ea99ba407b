"""Click prediction from a dictionary of ragged features, each with an embedding table and its own number of values.

After https://github.com/meta-pytorch/torchrec/pull/2151 (the number of values of a ragged feature, also 0 and 1) and
https://github.com/pytorch/pytorch/issues/146168 (sizes of several inputs change and are compared with each other).
"""

import argparse

import torch
from torch import nn
from torch.nn import functional as F

FEATURES = {"item": (200, 1.0), "category": (40, 2.5), "history": (200, 4.0), "tags": (60, 3.0), "coupon": (10, 0.1)}


class RaggedFeature:
    """Values of a batch in one flat tensor, and where each row begins."""

    def __init__(self, rows):
        lengths = torch.tensor([0] + [len(row) for row in rows[:-1]])
        self.values = torch.tensor([value for row in rows for value in row], dtype=torch.long)
        self.offsets = lengths.cumsum(0)


class Tower(nn.Module):
    def __init__(self, tables, width):
        super().__init__()
        self.tables = nn.ModuleDict(
            {name: nn.EmbeddingBag(rows, width, mode="sum") for name, (rows, _) in tables.items()}
        )

    def forward(self, features):
        return [table(*features[name]) for name, table in self.tables.items()]


class ClickModel(nn.Module):
    def __init__(self, tables, width=12, dense=5):
        super().__init__()
        self.tower = Tower(tables, width)
        self.dense = nn.Sequential(nn.Linear(dense, 16), nn.ReLU(), nn.Linear(16, width))
        count = len(tables) + 1
        self.over = nn.Sequential(nn.Linear(width + count * (count - 1) // 2, 16), nn.ReLU(), nn.Linear(16, 1))
        self.register_buffer("pairs", torch.combinations(torch.arange(count)).T.contiguous())

    def forward(self, dense, features):
        dense = self.dense(dense)
        vectors = torch.stack([dense, *self.tower(features)], dim=1)
        interactions = torch.bmm(vectors, vectors.transpose(1, 2))[:, self.pairs[0], self.pairs[1]]
        return self.over(torch.cat([dense, interactions], dim=1)).squeeze(1)


def make_log(batches, batch_size, seed):
    generator = torch.Generator().manual_seed(seed)

    def row(rows, mean):
        certain = int(mean >= 1)
        count = certain + int(torch.poisson(torch.tensor(mean - certain), generator=generator))
        return torch.randint(0, rows, (count,), generator=generator).tolist()

    for _ in range(batches):
        dense = torch.randn(batch_size, 5, generator=generator)
        features = {}
        for name, (rows, mean) in FEATURES.items():
            ragged = RaggedFeature([row(rows, mean) for _ in range(batch_size)])
            features[name] = (ragged.values, ragged.offsets)
        first_item = features["item"][0].float() / 200
        yield dense, features, (dense[:, 0] + first_item > 0.5).float()


class Accuracy:
    def __init__(self):
        self.right = self.count = 0

    def update(self, logits, clicks):
        self.right += ((logits > 0) == (clicks > 0.5)).sum().item()
        self.count += len(clicks)

    def compute(self):
        return self.right / max(1, self.count)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--batches", type=int, default=12)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--lr", type=float, default=0.05)
    parser.add_argument("--backend", default="aot_eager")
    args = parser.parse_args()

    torch.manual_seed(0)
    model = ClickModel(FEATURES)
    forward = torch.compile(model, backend=args.backend)
    optimizer = torch.optim.Adagrad(model.parameters(), lr=args.lr)
    accuracy = Accuracy()
    for step, (dense, features, clicks) in enumerate(make_log(args.batches, args.batch_size, seed=5)):
        logits = forward(dense, features)
        loss = F.binary_cross_entropy_with_logits(logits, clicks)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        accuracy.update(logits.detach(), clicks)
        print(f"step {step:2d} loss {loss.item():.4f} accuracy {accuracy.compute():.4f}")


if __name__ == "__main__":
    main()
