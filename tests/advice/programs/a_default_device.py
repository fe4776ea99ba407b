import torch


@torch.compile
def scale(x):
    return x * 2


x = torch.ones(4)
results = [scale(x)]
with torch.device("cpu"):
    results.append(scale(x))
