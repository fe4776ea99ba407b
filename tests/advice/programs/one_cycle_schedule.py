import torch

weight = torch.nn.Parameter(torch.ones(4))
optimizer = torch.optim.AdamW([weight], lr=0.01)
schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.1, total_steps=10)
step = torch.compile(optimizer.step)
for _ in range(5):
    weight.grad = torch.ones(4)
    step()
    schedule.step()
results = weight
