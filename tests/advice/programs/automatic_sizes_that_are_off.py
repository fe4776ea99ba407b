import torch

torch._dynamo.config.automatic_dynamic_shapes = False


@torch.compile
def center(x):
    return x - x.mean(0)


results = []
for rows in (4, 6, 7, 9):
    batch = torch.linspace(0, 1, rows * 4).reshape(rows, 4)
    results.append(center(batch))
