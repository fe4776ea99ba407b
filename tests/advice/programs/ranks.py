import torch


@torch.compile
def scale(x):
    return x * 2


results = []
for shape in ((4, 6), (4,), (2, 4, 6)):
    x = torch.ones(shape)
    results.append(scale(x))
