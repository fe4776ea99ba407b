import torch

modules = [torch.compile(torch.nn.Linear(4, 4)), torch.compile(torch.nn.Conv1d(2, 2, 1))]
x = torch.ones(1, 2, 4)
results = []
for _ in range(3):
    for module in modules:
        results.append(module(x))
