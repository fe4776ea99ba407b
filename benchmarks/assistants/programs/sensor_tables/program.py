"""Merge the readings of sensors into one table, one sensor after the other."""

import torch

torch.manual_seed(9)


@torch.compile(backend="aot_eager")
def merge(table, name, reading):
    smooth = torch.nn.functional.avg_pool1d(reading[None], 5, 1, 2)[0]
    table[name] = (smooth - smooth.mean()) / (smooth.std() + 1e-6)


table = {}
for name in ("north", "east", "south", "west", "roof", "cellar", "yard", "door", "gate", "well"):
    merge(table, name, torch.randn(100).cumsum(0))
print("result:", f"{sum(value.abs().sum().item() for value in table.values()):.4f} {len(table)}")
