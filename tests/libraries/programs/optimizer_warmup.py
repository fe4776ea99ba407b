"""Trains with a compiled SGD step: momentum, two groups of parameters, and learning rates that warm up."""

import torch
from torch import nn

body, head = nn.Linear(8, 8), nn.Linear(8, 4)
optimizer = torch.optim.SGD(
    [{"params": body.parameters(), "lr": 0.01}, {"params": head.parameters(), "lr": 0.1}],
    momentum=0.9,
)
warmup = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda n: min(1.0, (n + 1) / 4))


@torch.compile
def update():
    optimizer.step()


results = []
for _ in range(6):
    loss = nn.functional.mse_loss(head(body(torch.ones(4, 8))), torch.zeros(4, 4))
    loss.backward()
    update()
    optimizer.zero_grad()
    warmup.step()
    results.append(loss)
