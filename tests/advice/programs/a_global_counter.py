import torch

STATE = {"step": 0}


@torch.compile
def forward(x):
    return x.sum() * STATE["step"]


results = []
for length in (4, 6, 8, 10):
    STATE["step"] += 3
    x = torch.ones(length)
    results.append(forward(x))
