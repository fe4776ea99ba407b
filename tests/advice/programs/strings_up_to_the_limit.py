import torch


@torch.compile
def forward(x, name):
    return x * len(name)


x = torch.ones(4)
results = []
for length in range(1, 12):
    name = "n" * length
    results.append(forward(x, name))
