"""Clip gradients by their norm, and keep the norms."""

import torch

torch.manual_seed(49)
history = []


@torch.compile(backend="aot_eager")
def clip(gradient):
    norm = gradient.norm()
    history.append(norm.item())
    return gradient * torch.clamp(2.0 / norm, max=1.0)


weights = torch.randn(60)
for _ in range(10):
    weights = weights - 0.1 * clip(weights * weights.abs())
print(f"result: {sum(history):.4f} {weights.abs().sum():.4f} {len(history)}")
