"""Train a small regression; the learning rate is halved when the loss does not get better."""

import torch
from torch import nn

torch.manual_seed(10)
model = nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=torch.tensor(0.05))
data = torch.randn(128, 8)
target = data[:, :1] * data[:, 1:2]


@torch.compile(backend="aot_eager")
def update():
    optimizer.step()


def reduce():
    for group in optimizer.param_groups:
        group["lr"] = max(float(group["lr"]) * 0.7, 1e-4)


for step in range(24):
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(data), target)
    loss.backward()
    update()
    if step % 2:
        reduce()
print(f"result: {loss.item():.5f}")
