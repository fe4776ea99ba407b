"""Trains with a compiled AdamW step and the one-cycle policy, which changes learning rate and momentum."""

import torch
from torch import nn

model = nn.Linear(8, 4)
optimizer = torch.optim.AdamW(model.parameters(), lr=torch.tensor(0.01))
scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.1, total_steps=10)
update = torch.compile(optimizer.step)

results = []
for _ in range(6):
    loss = model(torch.ones(4, 8)).pow(2).mean()
    loss.backward()
    update()
    optimizer.zero_grad()
    scheduler.step()
    results.append(loss.isfinite())
