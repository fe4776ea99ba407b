import torch


@torch.compile
def scale(x):
    return x * 2


results = []
for needs_gradient in (False, True):
    x = torch.ones(4, requires_grad=needs_gradient)
    results.append(scale(x))
