import torch


@torch.compile
def blend(a, b):
    return (a + b).clip(0)


a, b = torch.ones(4), torch.full((4,), -0.5)
results = []
with torch.no_grad():
    for step in range(4):
        if step == 1:
            a.requires_grad_(True)
        if step == 2:
            b.requires_grad_(True)
        results.append(blend(a, b))
