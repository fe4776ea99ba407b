import torch


@torch.compile(dynamic=False)
def first(x):
    return x.sin()


@torch.compile(dynamic=False)
def second(y):
    return y.cos() + 1


results = []
for rows in (4, 6, 8):
    batch = torch.ones(rows)
    hidden = first(batch)
    results.append(second(hidden))
