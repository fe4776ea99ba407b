import torch


@torch.compile
def forward(x):
    x = x + 1
    print("one")
    x = x + 2
    print("two")
    x = x + 3
    print("three")
    return x


results = forward(torch.ones(4))
