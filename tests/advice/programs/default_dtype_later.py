import torch


@torch.compile
def scale(x):
    return x * 2


x = torch.ones(4, dtype=torch.float32)
results = [scale(x)]
torch.set_default_dtype(torch.float64)
results.append(scale(x))
