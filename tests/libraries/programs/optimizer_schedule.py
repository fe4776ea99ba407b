"""Trains with a compiled Adam step and a learning rate that decays."""

import torch
from torch import nn

model = nn.Linear(8, 4)
optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.9)


@torch.compile
def update():
    optimizer.step()


results = []
for _ in range(5):
    loss = model(torch.ones(4, 8)).pow(2).mean()
    loss.backward()
    update()
    optimizer.zero_grad()
    scheduler.step()
    results.append(loss)
