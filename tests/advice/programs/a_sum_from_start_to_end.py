import torch


@torch.compile
def accumulate(x, start, end):
    total = x[start]
    for i in range(start + 1, end):
        total = total + x[i] * 0.5
    return total


x = torch.arange(40.0).reshape(10, 4)
results = []
for start in range(5):
    results.append(accumulate(x, start, 10))
