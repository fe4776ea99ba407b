import torch


@torch.compile
def embed(x):
    return x * 2


results = []
with torch.no_grad():
    results.append(embed(torch.ones(4)))
with torch.inference_mode():
    x = torch.ones(4)
    results.append(embed(x))
