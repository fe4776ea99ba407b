import torch


@torch.compile
def mix(x, k):
    return x * k


x = torch.ones(4)
results = []
for k in (2.0, torch.tensor(2.0)):
    results.append(mix(x, k))
