import torch


class Holder:
    pass


@torch.compile
def shift(x, holder):
    return x + 2 if hasattr(holder, "bias") else x + 1


x, holder = torch.ones(4), Holder()
results = [shift(x, holder)]
holder.bias = 1
results.append(shift(x, holder))
