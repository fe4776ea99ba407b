"""Fine-tune a head with accelerate: gradient accumulation, a scheduler, and an evaluation after each epoch.

After https://github.com/pytorch/pytorch/issues/131975 (with and without gradients) and
https://github.com/pytorch/pytorch/issues/100241 (where `no_grad` and autocast belong).
"""

import argparse

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset


class Backbone(nn.Module):
    """Stands for a pretrained network; its weights are frozen."""

    def __init__(self, inputs, width):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(inputs, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh())
        self.requires_grad_(False)

    def forward(self, x):
        return self.layers(x)


class FineTuned(nn.Module):
    def __init__(self, inputs=8, width=32, rank=4, classes=3):
        super().__init__()
        self.backbone = Backbone(inputs, width)
        self.down = nn.Linear(width, rank, bias=False)
        self.up = nn.Linear(rank, width, bias=False)
        nn.init.zeros_(self.up.weight)
        self.dropout = nn.Dropout(0.0)
        self.head = nn.Linear(width, classes)

    def forward(self, x):
        x = self.backbone(x)
        return self.head(x + self.up(self.dropout(self.down(x))))


def make_dataset(count):
    x = torch.randn(count, 8)
    return TensorDataset(x, torch.bucketize(x[:, 0] * x[:, 1] + x[:, 2], torch.tensor([-0.5, 0.5])))


def evaluate(accelerator, model, loader):
    model.eval()
    right = count = 0
    for x, labels in loader:
        with torch.no_grad():
            predictions = model(x).argmax(-1)
        gathered, targets = accelerator.gather_for_metrics((predictions, labels))
        right += (gathered == targets).sum().item()
        count += len(targets)
    return right / count


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--accumulate", type=int, default=2)
    parser.add_argument("--lr", type=float, default=2e-2)
    args = parser.parse_args()

    set_seed(0)
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=args.accumulate)
    train_loader = DataLoader(make_dataset(96), batch_size=args.batch_size, shuffle=True, drop_last=True)
    eval_loader = DataLoader(make_dataset(48), batch_size=args.batch_size)
    model = FineTuned()
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=args.lr)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.1, total_iters=args.epochs * len(train_loader))
    model, optimizer, train_loader, eval_loader, schedule = accelerator.prepare(
        model, optimizer, train_loader, eval_loader, schedule
    )
    compiled = torch.compile(model, backend="aot_eager")

    for epoch in range(args.epochs):
        compiled.train()
        total = 0.0
        for x, labels in train_loader:
            with accelerator.accumulate(compiled):
                loss = F.cross_entropy(compiled(x), labels)
                accelerator.backward(loss)
                if accelerator.sync_gradients:
                    accelerator.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                schedule.step()
                optimizer.zero_grad()
            total += loss.item()
        accuracy = evaluate(accelerator, compiled, eval_loader)
        accelerator.print(f"epoch {epoch} loss {total / len(train_loader):.4f} accuracy {accuracy:.4f}")


if __name__ == "__main__":
    main()
