"""Train an image classifier whose loss function is given the precision of each step as a context.

After https://github.com/pytorch/pytorch/issues/100241 (where autocast and no_grad belong) and
https://github.com/pytorch/pytorch/issues/112260 (guards on autocast).
"""

import argparse
import contextlib

import torch
from torch import nn
from torch.nn import functional as F

BACKEND = "aot_eager"


class Block(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.norm = nn.GroupNorm(4, channels)
        self.conv = nn.Conv2d(channels, channels, 3, padding=1)

    def forward(self, x):
        return x + self.conv(F.silu(self.norm(x)))


class Classifier(nn.Module):
    def __init__(self, classes, channels=16, depth=2):
        super().__init__()
        self.stem = nn.Conv2d(1, channels, 3, padding=1)
        self.blocks = nn.Sequential(*(Block(channels) for _ in range(depth)))
        self.head = nn.Linear(channels, classes)

    def forward(self, images):
        x = self.blocks(self.stem(images))
        return self.head(x.mean((2, 3)))


def precision(args, step):
    """float32 while the learning rate warms up, then the precision of the arguments."""
    if args.dtype == "float32" or step < args.warmup:
        return contextlib.nullcontext()
    return torch.autocast("cpu", dtype=getattr(torch, args.dtype))


@torch.compile(backend=BACKEND)
def loss_of(model, images, labels, smoothing, context):
    with context:
        logits = model(images)
        return F.cross_entropy(logits.float(), labels, label_smoothing=smoothing)


class Shapes:
    """Images of bars, whose angle is the class."""

    def __init__(self, count, size, classes, seed):
        generator = torch.Generator().manual_seed(seed)
        self.labels = torch.randint(classes, (count,), generator=generator)
        angle = self.labels * torch.pi / classes
        y, x = torch.meshgrid(torch.linspace(-1, 1, size), torch.linspace(-1, 1, size), indexing="ij")
        distance = x * angle.sin()[:, None, None] - y * angle.cos()[:, None, None]
        self.images = (distance.abs() < 0.25).float().unsqueeze(1)
        self.images += 0.2 * torch.randn(self.images.shape, generator=generator)

    def batches(self, size):
        return list(zip(self.images.split(size), self.labels.split(size), strict=True))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--warmup", type=int, default=2)
    parser.add_argument("--dtype", default="bfloat16", choices=["float32", "bfloat16"])
    parser.add_argument("--lr", type=float, default=5e-3)
    args = parser.parse_args()

    torch.manual_seed(0)
    train = Shapes(64, 12, 4, seed=1).batches(args.batch_size)
    held_out = Shapes(16, 12, 4, seed=2).batches(16)
    model = Classifier(4)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)
    step = 0
    for epoch in range(args.epochs):
        total = 0.0
        for images, labels in train:
            for group in optimizer.param_groups:
                group["lr"] = args.lr * min(1.0, (step + 1) / args.warmup)
            loss = loss_of(model, images, labels, 0.1, precision(args, step))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
            step += 1
        model.eval()
        with torch.no_grad():
            images, labels = held_out[0]
            accuracy = (model(images).argmax(-1) == labels).float().mean()
        model.train()
        print(f"epoch {epoch} loss {total / len(train):.3f} accuracy {accuracy.item():.2f}")


if __name__ == "__main__":
    main()
