import torch


@torch.compile(dynamic=False)
def step(weight, grad, lr):
    return weight - lr * grad


weight, grad = torch.ones(4), torch.ones(4)
results = []
for lr in (0.1, 0.05, 0.025):
    results.append(step(weight, grad, lr))
