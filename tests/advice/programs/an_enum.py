import enum

import torch


class Mode(enum.Enum):
    SMALL = 1
    LARGE = 2


@torch.compile
def shift(x, mode):
    return x + mode.value


x = torch.ones(4)
results = []
for _ in range(2):
    for mode in Mode:
        results.append(shift(x, mode))
