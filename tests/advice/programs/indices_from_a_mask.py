import torch


@torch.compile
def select(x, keep):
    indices = keep.nonzero().squeeze(1)
    return x[indices] * 2


x = torch.arange(8.0)
results = []
for threshold in (1, 2, 4, 5):
    results.append(select(x, x > threshold))
