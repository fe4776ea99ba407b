import torch


@torch.compile(dynamic=False)
def crop(x, end):
    return x[:, :end].sum(1)


results = []
for length, end in ((8, 5), (10, 6), (12, 9), (14, 11)):
    x = torch.arange(2.0 * length).reshape(2, length)
    results.append(crop(x, end))
