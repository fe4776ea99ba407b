import torch


@torch.compile
def forward(x, step):
    y = x * 2
    if step % 3 == 0:
        y = y + 1
    return y


x = torch.ones(4)
results = []
for step in (2, 3, 4, 5, 6):
    results.append(forward(x, step))
