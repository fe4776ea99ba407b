import os

import torch


@torch.compile
def shift(x):
    return x + 1 if os.environ.get("SHIFT_UP") == "1" else x - 1


x = torch.ones(4)
results = []
for flag in "01":
    os.environ["SHIFT_UP"] = flag
    results.append(shift(x))
