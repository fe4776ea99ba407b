import torch

SCALE = 3


@torch.compile
def scale(x):
    return x * SCALE


x = torch.ones(4)
results = []
for value in (9, 5, 7):
    SCALE = value
    results.append(scale(x))
