import torch


@torch.compile(dynamic=True)
def align(x, y):
    if x.size(0) > y.size(0):
        return x[: y.size(0)] + y
    return x + y[: x.size(0)]


results = []
for left, right in ((6, 4), (8, 5), (3, 7)):
    x, y = torch.ones(left), torch.ones(right)
    results.append(align(x, y))
