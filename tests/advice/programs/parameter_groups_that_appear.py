import torch

first = torch.nn.Parameter(torch.ones(4))
optimizer = torch.optim.SGD([first], lr=0.1)
step = torch.compile(optimizer.step)
for _ in range(3):
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            parameter.grad = torch.ones_like(parameter)
    step()
    optimizer.add_param_group({"params": [torch.nn.Parameter(torch.ones(3))]})
results = [group["params"][0] for group in optimizer.param_groups]
