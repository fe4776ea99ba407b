import torch


@torch.compile
def add_history(x, history):
    return x + sum(history)


x, history = torch.ones(4), [torch.ones(4)]
results = []
for _ in range(4):
    results.append(add_history(x, history))
    history.append(torch.ones(4))
