"""Answer requests with a small ranking model, and keep the time of each."""

import time

import torch
from torch import nn

torch.manual_seed(6)
model = nn.Sequential(nn.Linear(40, 64), nn.ReLU(), nn.Linear(64, 10))


@torch.compile(backend="aot_eager")
def rank(features):
    normalized = (features - features.mean()) / features.std()
    start = time.perf_counter()
    scores = model(normalized)
    seconds = time.perf_counter() - start
    return torch.softmax(scores, -1), seconds


with torch.no_grad():
    times, best = [], 0.0
    for _ in range(6):
        scores, seconds = rank(torch.rand(8, 40))
        times.append(seconds)
        best += scores.max(-1).values.sum().item()
print(f"slowest request: {max(times) * 1e3:.1f} ms")
print(f"result: {best:.5f} {len(times)}")
