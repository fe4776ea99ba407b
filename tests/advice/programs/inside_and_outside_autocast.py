import torch


@torch.compile
def project(x):
    return x @ x


x = torch.ones(4, 4)
results = [project(x).float()]
with torch.autocast("cpu"):
    results.append(project(x).float())
