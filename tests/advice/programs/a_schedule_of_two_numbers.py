import torch

weight = torch.nn.Parameter(torch.ones(4))
optimizer = torch.optim.SGD([weight], lr=0.5, momentum=0.9)
step = torch.compile(optimizer.step, dynamic=False)
for rate, momentum in ((0.5, 0.9), (0.25, 0.8), (0.1, 0.7)):
    optimizer.param_groups[0]["lr"] = rate
    optimizer.param_groups[0]["momentum"] = momentum
    weight.grad = torch.ones(4)
    step()
results = weight
