import torch


@torch.compile
def forward(x):
    class Scale:
        factor = 3

    return torch.sin(x) * Scale.factor


results = forward(torch.ones(4))
