import torch


@torch.compile
def forward(x):
    for _ in range(3):
        x = x + 1
        print(end="")
    return x


results = forward(torch.ones(4))
