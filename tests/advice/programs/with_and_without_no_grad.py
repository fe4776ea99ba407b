import torch


@torch.compile
def scale(x):
    return x * 2


x = torch.ones(4)
results = [scale(x)]
with torch.no_grad():
    results.append(scale(x))
