"""A training that recompiles at every step: the program of 00_tutorial.ipynb as a script.

`compilediag fix notebooks/tutorial.py` finds and proves the change that keeps it compiled.
"""

import time

import torch
from torch import nn

BACKEND = "inductor"  # the default backend of torch.compile


class Scorer(nn.Module):
    """Score sequences. The score grows to its full size in the first ten steps."""

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(8, 32), nn.GELU(), nn.Linear(32, 1))
        self.step = 0

    def forward(self, x):
        self.step += 1
        return self.layers(x).mean() * min(1.0, self.step / 10)


def train():
    torch.manual_seed(0)
    model = Scorer()
    compiled = torch.compile(model, backend=BACKEND)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for length in (16, 24, 32, 40, 48):
        begin = time.perf_counter()
        x = torch.randn(4, length, 8)
        loss = compiled(x)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        print(f"{length} tokens: loss {loss.item():.4f}, {time.perf_counter() - begin:.1f} s")


if __name__ == "__main__":
    train()
