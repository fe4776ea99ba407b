import torch


@torch.compile(dynamic=True)
def scale(x, t):
    t = torch.as_tensor(t, dtype=x.dtype, device=x.device)
    return x * t


x = torch.ones(4)
results = []
for t in (0.1, 0.2, 0.3, 0.4):
    results.append(scale(x, t))
