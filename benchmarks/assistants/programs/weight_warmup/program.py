"""Update weights with a factor that is warmed up."""

import torch

torch.manual_seed(44)
step = 0
target = torch.randn(50)


def warmup():
    return min(1.0, (step + 1) / 10)


@torch.compile(backend="aot_eager")
def update(weights):
    return weights - 0.3 * warmup() * (weights - target)


weights = torch.zeros(50)
for step in range(15):
    weights = update(weights)
print(f"result: {weights.sum():.5f} {weights.square().sum():.5f}")
