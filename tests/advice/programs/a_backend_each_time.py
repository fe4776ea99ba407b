import torch


def scale(x):
    return x * 2


x = torch.ones(4)
results = []
for _ in range(3):
    compiled = torch.compile(scale, backend=lambda graph, inputs: graph)
    results.append(compiled(x))
