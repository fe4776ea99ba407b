import torch


@torch.compile
def forward(x):
    try:
        x = x + 1
        print(end="")
        return x * 2
    except ValueError:
        return x


results = forward(torch.ones(4))
