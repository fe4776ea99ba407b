"""Distill a deep network into a shallow one: both are compiled, and forward hooks collect what they have inside.

After https://github.com/pytorch/pytorch/issues/141589 (several compiled models that share the code of a class) and
https://github.com/xdit-project/xDiT/pull/781 (the keys of a dictionary change between calls).
"""

import argparse

import torch
from torch import nn
from torch.nn import functional as F


class ResidualBlock(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))

    def forward(self, x):
        return x + self.mlp(self.norm(x))


class Network(nn.Module):
    def __init__(self, inputs, width, depth, classes):
        super().__init__()
        self.embed = nn.Linear(inputs, width)
        self.blocks = nn.ModuleList(ResidualBlock(width) for _ in range(depth))
        self.head = nn.Linear(width, classes)

    def forward(self, x):
        x = self.embed(x)
        for block in self.blocks:
            x = block(x)
        return self.head(x)


class FeatureTap:
    """Remembers the outputs of some modules by their names."""

    def __init__(self, model, names):
        self.features = {}
        for name in names:
            model.get_submodule(name).register_forward_hook(self.make_hook(name))

    def make_hook(self, name):
        def hook(module, args, output):
            self.features[name] = output

        return hook


def similarity(x, y):
    """How alike two batches of features of different widths are: the matrices of their inner products."""
    x, y = (F.normalize(t - t.mean(0), dim=-1) for t in (x, y))
    return F.mse_loss(x @ x.T, y @ y.T)


def make_batch(batch_size, seed):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(batch_size, 10, generator=generator)
    return x, (x[:, 0] * x[:, 1] > 0).long() + (x[:, 2] > 1).long()


def pretrain(model, steps):
    """The teacher learns eagerly first."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
    for step in range(steps):
        x, y = make_batch(64, seed=1000 + step)
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--temperature", type=float, default=2.0)
    parser.add_argument("--backend", default="aot_eager")
    args = parser.parse_args()

    torch.manual_seed(0)
    teacher, student = Network(10, 32, 4, 3), Network(10, 16, 2, 3)
    print(f"teacher {pretrain(teacher, 30):.4f}")
    teacher.eval().requires_grad_(False)
    teacher_tap = FeatureTap(teacher, ["blocks.1", "blocks.3"])
    student_tap = FeatureTap(student, ["blocks.0", "blocks.1"])
    compiled_teacher = torch.compile(teacher, backend=args.backend)
    compiled_student = torch.compile(student, backend=args.backend)
    optimizer = torch.optim.AdamW(student.parameters(), lr=1e-2)

    for step in range(args.steps):
        x, _ = make_batch(args.batch_size, seed=step)
        with torch.no_grad():
            target = (compiled_teacher(x) / args.temperature).softmax(-1)
        logits = compiled_student(x)
        loss = F.kl_div((logits / args.temperature).log_softmax(-1), target, reduction="batchmean")
        pairs = zip(teacher_tap.features.values(), student_tap.features.values(), strict=True)
        inside = sum(similarity(theirs, ours) for theirs, ours in pairs)
        optimizer.zero_grad()
        (loss + 0.1 * inside).backward()
        optimizer.step()
        print(f"step {step:2d} loss {loss.item():.4f} inside {inside.item():.4f}")


if __name__ == "__main__":
    main()
