import torch


@torch.compile
def scale(x):
    return x * 2


results = []
for device in ("cpu", "meta"):
    x = torch.ones(4, device=device)
    results.append(scale(x).shape)
