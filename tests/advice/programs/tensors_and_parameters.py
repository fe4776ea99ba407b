import torch


@torch.compile
def scale(x):
    return x * 2


results = []
inputs = [torch.ones(4), torch.nn.Parameter(torch.ones(4), requires_grad=False)]
for x in inputs:
    results.append(scale(x))
