"""Denoise a signal with a diffusion schedule of 20 levels."""

import math

import torch
from torch import nn

torch.manual_seed(15)
LEVELS = 20


class Schedule:
    """Cumulative products of a cosine schedule, one per level."""

    def __init__(self, levels):
        self.alphas = []
        for level in range(levels + 1):
            self.alphas.append(max(0.001, math.cos((level / levels + 0.008) / 1.008 * math.pi / 2) ** 2))


class Denoiser(nn.Module):
    def __init__(self, size=32):
        super().__init__()
        self.level = nn.Embedding(LEVELS + 1, size)
        self.body = nn.Sequential(nn.Linear(size, 64), nn.SiLU(), nn.Linear(64, size))

    def forward(self, x, level):
        return self.body(x + self.level.weight[level])


schedule = Schedule(LEVELS)
denoiser = Denoiser().eval()


@torch.compile(backend="aot_eager")
def denoise(x, level):
    """One step of DDIM from a level to the one below."""
    noise = denoiser(x, level)
    now, below = schedule.alphas[level], schedule.alphas[level - 1]
    clean = (x - noise * (1 - now) ** 0.5) / now**0.5
    return clean.clamp(-3, 3) * below**0.5 + noise * (1 - below) ** 0.5


with torch.no_grad():
    x = torch.randn(4, 32)
    for level in range(LEVELS, 0, -1):
        x = denoise(x, level)
print(f"result: {x.mean().item():.5f} {x.std().item():.5f}")
