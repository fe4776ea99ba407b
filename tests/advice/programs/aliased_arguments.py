import torch


@torch.compile
def add(x, y):
    return x + y


one, other = torch.ones(4), torch.zeros(4)
results = []
for x, y in ((one, other), (one, one)):
    results.append(add(x, y))
