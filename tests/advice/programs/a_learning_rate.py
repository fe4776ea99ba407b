import torch

weight = torch.nn.Parameter(torch.ones(4))
optimizer = torch.optim.SGD([weight], lr=0.5)
step = torch.compile(optimizer.step, dynamic=False)
for rate in (0.5, 0.25, 0.1):
    optimizer.param_groups[0]["lr"] = rate
    weight.grad = torch.ones(4)
    step()
results = weight
