"""Train a tabular classifier the way the documentation advises: equal batches, and an eager model for validation.

After https://github.com/meta-pytorch/torchtune/pull/1654 and https://github.com/Lightning-AI/litgpt/pull/794
(`drop_last=True`), and https://github.com/pytorch/pytorch/issues/110803 (train and eval toggled on a compiled model).
"""

import argparse

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset, random_split


class Tabular(nn.Module):
    def __init__(self, numbers, categories, width=32, classes=3, dropout=0.1):
        super().__init__()
        self.embeddings = nn.ModuleList(nn.Embedding(size, 6) for size in categories)
        self.body = nn.Sequential(
            nn.Linear(numbers + 6 * len(categories), width),
            nn.GELU(),
            nn.LayerNorm(width),
            nn.Linear(width, width),
            nn.GELU(),
        )
        self.dropout = dropout
        self.head = nn.Linear(width, classes)

    def forward(self, numbers, categories, keep):
        embedded = [embedding(categories[:, i]) for i, embedding in enumerate(self.embeddings)]
        x = self.body(torch.cat([numbers, *embedded], dim=1))
        return self.head(x * keep / (1 - self.dropout))


def make_dataset(count, categories):
    numbers = torch.randn(count, 6)
    columns = torch.stack([torch.randint(0, size, (count,)) for size in categories], dim=1)
    score = numbers[:, 0] + 0.5 * columns[:, 0] - 0.3 * columns[:, 1]
    labels = torch.bucketize(score, torch.tensor([-0.3, 0.9]))
    return TensorDataset(numbers, columns, labels)


@torch.no_grad()
def validate(model, loader):
    """Validation runs eagerly: it is short, and its batches have any size."""
    model.eval()
    right = count = 0
    for numbers, categories, labels in loader:
        keep = torch.full((len(labels), 32), 1 - model.dropout)
        right += (model(numbers, categories, keep).argmax(1) == labels).sum().item()
        count += len(labels)
    model.train()
    return right / count


class Checkpoint:
    """Keeps the best weights in memory."""

    def __init__(self):
        self.best = 0.0
        self.state = None

    def update(self, model, accuracy):
        if accuracy > self.best:
            self.best = accuracy
            self.state = {name: value.clone() for name, value in model.state_dict().items()}
            return True
        return False


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--lr", type=float, default=1e-2)
    parser.add_argument("--workers", type=int, default=0)
    args = parser.parse_args()

    torch.manual_seed(0)
    categories = [5, 7]
    train, valid = random_split(make_dataset(230, categories), [180, 50])
    train_loader = DataLoader(train, args.batch_size, shuffle=True, drop_last=True, num_workers=args.workers)
    valid_loader = DataLoader(valid, args.batch_size)

    model = Tabular(6, categories)
    train_model = torch.compile(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, args.lr, args.epochs * len(train_loader))
    checkpoint = Checkpoint()

    for epoch in range(args.epochs):
        total = 0.0
        for numbers, columns, labels in train_loader:
            keep = (torch.rand(len(labels), 32) > model.dropout).float()
            loss = F.cross_entropy(train_model(numbers, columns, keep), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            total += loss.item()
        accuracy = validate(model, valid_loader)
        mark = " *" if checkpoint.update(model, accuracy) else ""
        print(f"epoch {epoch} loss {total / len(train_loader):.4f} accuracy {accuracy:.4f}{mark}")
    print(f"best {checkpoint.best:.4f}")


if __name__ == "__main__":
    main()
