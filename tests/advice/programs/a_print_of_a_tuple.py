import torch


@torch.compile
def forward(x):
    y = x + 1
    print("shape", tuple(y.shape))
    return y * 2


results = forward(torch.ones(4))
