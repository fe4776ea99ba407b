import torch


@torch.compile
def scale(x):
    return x * 2


x = torch.ones(4)
results = [scale(x)]
torch.set_num_threads(torch.get_num_threads() + 1)
results.append(scale(x))
