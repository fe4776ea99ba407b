"""Train in bfloat16, then polish the last steps in float32, and check now and then without gradients.

After https://github.com/pytorch/pytorch/issues/166268 (`___check_global_state` says little about autocast) and
https://github.com/pytorch/pytorch/issues/112260 (guards on the ambient autocast mode).
"""

import argparse
import contextlib

import torch
from torch import nn
from torch.nn import functional as F


class Forecaster(nn.Module):
    """Predicts the next value of several series from a window."""

    def __init__(self, series, window, width=32):
        super().__init__()
        self.conv = nn.Conv1d(series, width, 5, padding=2)
        self.mix = nn.ModuleList(nn.Linear(window, window) for _ in range(2))
        self.norms = nn.ModuleList(nn.LayerNorm(window) for _ in range(2))
        self.head = nn.Linear(width * window, series)

    def forward(self, x):
        x = F.gelu(self.conv(x))
        for mix, norm in zip(self.mix, self.norms, strict=True):
            x = x + F.gelu(mix(norm(x)))
        return self.head(x.flatten(1))


class Windows:
    """Sliding windows over synthetic series, in an order that depends on the epoch only."""

    def __init__(self, series, length, window, batch_size):
        time = torch.arange(length, dtype=torch.float32)
        phase = torch.rand(series, 1, generator=torch.Generator().manual_seed(4)) * 6.28
        rate = torch.linspace(0.05, 0.4, series)[:, None]
        self.data = torch.sin(rate * time + phase) + 0.05 * torch.randn(series, length)
        self.window = window
        self.batch_size = batch_size

    def epoch(self, number):
        count = self.data.shape[1] - self.window - 1
        order = torch.randperm(count, generator=torch.Generator().manual_seed(number))
        for starts in order.split(self.batch_size):
            if len(starts) < self.batch_size:
                return
            x = torch.stack([self.data[:, s : s + self.window] for s in starts])
            y = torch.stack([self.data[:, s + self.window] for s in starts])
            yield x, y


def precision_of(epoch, args):
    """bfloat16 first, float32 for the epochs that polish."""
    if epoch < args.epochs - args.polish_epochs:
        return torch.autocast("cpu", dtype=torch.bfloat16)
    return contextlib.nullcontext()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--polish-epochs", type=int, default=1)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--window", type=int, default=24)
    parser.add_argument("--lr", type=float, default=3e-3)
    parser.add_argument("--backend", default="aot_eager")
    args = parser.parse_args()

    torch.manual_seed(0)
    windows = Windows(5, 120, args.window, args.batch_size)
    model = Forecaster(5, args.window)
    predict = torch.compile(model, backend=args.backend)
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
    for epoch in range(args.epochs):
        losses = []
        for x, y in windows.epoch(epoch):
            with precision_of(epoch, args):
                loss = F.smooth_l1_loss(predict(x).float(), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        with torch.no_grad(), precision_of(epoch, args):
            x, y = next(windows.epoch(100))
            check = F.l1_loss(predict(x).float(), y)
        print(f"epoch {epoch} loss {sum(losses) / len(losses):.4f} check {check.item():.4f}")


if __name__ == "__main__":
    main()
