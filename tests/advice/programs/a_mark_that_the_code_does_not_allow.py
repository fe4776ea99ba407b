import torch


@torch.compile
def shift(x):
    return x + 1 if x.size(0) == 4 else x - 1


x = torch.ones(4)
torch._dynamo.mark_dynamic(x, 0)
try:
    results = shift(x)
except Exception as error:
    results = type(error).__name__
