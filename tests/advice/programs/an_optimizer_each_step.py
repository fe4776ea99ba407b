import gc

import torch

weight = torch.nn.Parameter(torch.ones(4))
for _ in range(3):
    weight.grad = torch.ones(4)
    optimizer = torch.optim.SGD([weight], lr=0.1)
    torch.compile(optimizer.step)()
    del optimizer
    gc.collect()
results = weight
