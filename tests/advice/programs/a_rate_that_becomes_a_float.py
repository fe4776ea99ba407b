import torch

weight = torch.nn.Parameter(torch.ones(4))
optimizer = torch.optim.SGD([weight], lr=torch.tensor(0.1))
step = torch.compile(optimizer.step)
for epoch in range(4):
    weight.grad = torch.ones(4)
    step()
    optimizer.param_groups[0]["lr"] = 0.1 * 0.5**epoch
results = weight
