import torch


@torch.compile(dynamic=True)
def blocked(x):
    if x.size(0) % 8 == 0:
        return x * 2
    return x * 3


results = []
for rows in (16, 24, 13):
    batch = torch.ones(rows)
    results.append(blocked(batch))
