import torch

weight = torch.nn.Parameter(torch.ones(4))
optimizer = torch.optim.Adam([weight], lr=0.1)
schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: 0.9**epoch)
step = torch.compile(optimizer.step)
for _ in range(5):
    weight.grad = torch.ones(4)
    step()
    schedule.step()
results = weight
