import torch


@torch.compile
def apply(x, activation):
    return activation(x)


x = torch.ones(4)
results = []
for _ in range(2):
    for activation in (torch.sin, torch.cos):
        results.append(apply(x, activation))
