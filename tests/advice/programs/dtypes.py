import torch


@torch.compile
def scale(x):
    return x * 2


results = []
for dtype in (torch.float32, torch.float64, torch.bfloat16):
    x = torch.ones(4, dtype=dtype)
    results.append(scale(x).float())
