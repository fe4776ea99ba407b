"""Energy of the occupied voxels of a volume."""

import torch

torch.manual_seed(32)
weights = torch.randn(8)


@torch.compile(backend="aot_eager")
def energy(features, occupied):
    active = features[occupied]
    return (torch.tanh(active) * weights).sum()


total = 0.0
for _ in range(5):
    features = torch.randn(600, 8)
    total += energy(features, features[:, 0] > 0.3).item()
print(f"result: {total:.3f}")
