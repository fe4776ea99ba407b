import torch


@torch.compile
def count(x, seen):
    return x + len(seen)


x, seen = torch.ones(4), {"a": 1}
results = []
for key in "bcd":
    results.append(count(x, seen))
    seen[key] = 1
