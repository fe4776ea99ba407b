import torch


@torch.compile
def forward(x):
    x = x + 1
    print(end="")
    x = x + 2
    print(end="")
    x = x + 3
    print(end="")
    return x


results = forward(torch.ones(4))
