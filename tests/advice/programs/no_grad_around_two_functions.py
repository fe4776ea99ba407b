import torch


@torch.compile
def first(x):
    return x * 2


@torch.compile
def second(x):
    return x * 3


x = torch.ones(4)
results = [second(first(x))]
with torch.no_grad():
    results.append(second(first(x)))
