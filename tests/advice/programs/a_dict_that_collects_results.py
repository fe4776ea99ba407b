import torch


@torch.compile
def step(x, log, name):
    log[name] = x.sum()
    return x * 2


results, log = [], {}
for n in range(4):
    x = torch.ones(4 + 2 * n)
    results.append(step(x, log, f"loss{n}"))
results.append(log)
