import torch


@torch.compile(dynamic=False)
def normalize(x):
    return (x - x.mean()) / (x.std() + 1e-5)


results = []
for rows in (4, 6, 7, 9):
    batch = torch.arange(rows * 3.0).reshape(rows, 3)
    results.append(normalize(batch))
