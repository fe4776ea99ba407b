import torch


@torch.compile
def encode(ids, mask):
    return (ids * mask).sum(-1) / mask.sum(-1)


results = []
for rows, length in ((4, 8), (6, 12), (3, 10), (5, 6)):
    ids = torch.ones(rows, length)
    mask = torch.ones(rows, length)
    results.append(encode(ids, mask))
