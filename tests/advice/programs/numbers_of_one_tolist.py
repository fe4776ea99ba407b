import torch


@torch.compile
def sum_parts(x, ends):
    a, b, c = ends.tolist()
    return x * a + x * b + x * c


x = torch.ones(4)
results = []
for k in (2, 5, 9):
    ends = torch.tensor([k, 2 * k + 1, 3 * k * k])
    results.append(sum_parts(x, ends))
