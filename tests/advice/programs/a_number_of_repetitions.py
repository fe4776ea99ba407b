import torch


@torch.compile
def repeat(x, times):
    y = x
    for _ in range(times):
        y = y * 2 + x
    return y


x = torch.ones(4)
results = []
for times in (3, 5, 4):
    results.append(repeat(x, times))
