import torch


@torch.compile
def score(x):
    return (x * 2).sum()


calibration = torch.ones(4, dtype=torch.float64)
results = [score(calibration)]
for n in range(3):
    x = torch.ones(4, requires_grad=True)
    y = score(x)
    y.backward()
    results += [y, x.grad]
