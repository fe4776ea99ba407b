import torch

IS_DYNAMIC = False


@torch.compile(dynamic=IS_DYNAMIC)
def scale(x, k):
    return x * k


x = torch.ones(4)
results = []
for k in (2, 5, 7, 4):
    results.append(scale(x, k))
