import torch


@torch.compile
def project(x, weight):
    return x @ weight


x = torch.ones(2, 4)
results = []
for width in (4, 6, 8):
    weight = torch.nn.Parameter(torch.ones(4, width))
    y = project(x, weight)
    y.sum().backward()
    results += [y, weight.grad]
