"""Denoise waves from which random spans are cut; the noise of the augmentation decreases with the step.

After https://github.com/pytorch/pytorch/issues/114293 (start and end of a span are ints) and
https://github.com/pytorch/pytorch/issues/99091 (a step that is an int recompiles).
"""

import argparse
import functools
import random

import torch
from torch import nn
from torch.nn import functional as F

BACKEND = "aot_eager"
STEP = 0


@functools.lru_cache
def time_axis(length):
    return torch.arange(length)


def make_waves(count, length, seed):
    generator = torch.Generator().manual_seed(seed)
    rate = torch.rand(count, 1, generator=generator) * 0.3 + 0.05
    phase = torch.rand(count, 1, generator=generator) * 6.28
    return torch.sin(rate * torch.arange(length) + phase), torch.randn(count, length, generator=generator)


@torch.compile(backend=BACKEND)
def augment(waves, noise, time, start, width):
    cut = (time >= start) & (time < start + width)
    level = 0.3 / (1 + STEP)
    return torch.where(cut, torch.zeros_like(waves), waves + level * noise), cut


class Denoiser(nn.Module):
    def __init__(self, channels=8):
        super().__init__()
        self.layers = nn.ModuleList([nn.Conv1d(1, channels, 9, padding=4), nn.Conv1d(channels, channels, 9, padding=4)])
        self.head = nn.Conv1d(channels, 1, 1)

    @torch.compile(backend=BACKEND)
    def loss(self, corrupted, waves, cut):
        x = corrupted.unsqueeze(1)
        for layer in self.layers:
            x = F.silu(layer(x))
        error = (self.head(x).squeeze(1) - waves).square()
        weight = 1 + cut.float()
        return (weight * error).mean()


class SpanSampler:
    """Spans of random position and width; sometimes nothing is cut."""

    def __init__(self, length, widest, seed):
        self.length, self.widest = length, widest
        self.random = random.Random(seed)

    def __call__(self):
        width = self.random.choice([0, 1, self.random.randint(2, self.widest)])
        return self.random.randint(0, self.length - width), width


def train_step(model, optimizer, waves, noise, span):
    global STEP
    start, width = span
    corrupted, cut = augment(waves, noise, time_axis(waves.shape[1]), start, width)
    loss = model.loss(corrupted, waves, cut)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    STEP += 1
    return loss.item()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=14)
    parser.add_argument("--batch-size", type=int, default=8)
    parser.add_argument("--length", type=int, default=48)
    parser.add_argument("--widest", type=int, default=12)
    args = parser.parse_args()

    torch.manual_seed(0)
    model = Denoiser()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    sampler = SpanSampler(args.length, args.widest, seed=4)
    for step in range(args.steps):
        waves, noise = make_waves(args.batch_size, args.length, seed=step)
        span = sampler()
        loss = train_step(model, optimizer, waves, noise, span)
        print(f"step {step:2d} span {span[0]:2d}+{span[1]:<2d} loss {loss:.4f}")


if __name__ == "__main__":
    main()
