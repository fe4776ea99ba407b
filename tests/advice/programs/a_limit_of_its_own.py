import torch


@torch.compile(recompile_limit=2)
def apply(x, activation):
    return activation(x) + 1


x = torch.ones(4)
results = []
for _ in range(3):
    for activation in (torch.sin, torch.cos, torch.tanh, torch.exp):
        results.append(apply(x, activation))
