import torch


@torch.compile(dynamic=False)
def split(x, heads):
    rows, length, width = x.shape
    return x.view(rows, length, heads, width // heads).transpose(1, 2).sum(-1)


results = []
for length, heads in ((6, 2), (8, 4), (10, 8), (12, 16)):
    x = torch.ones(2, length, 32)
    results.append(split(x, heads))
