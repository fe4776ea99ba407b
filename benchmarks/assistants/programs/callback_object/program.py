"""Norms of vectors with several exponents."""

import torch

torch.manual_seed(48)


class Reducer:
    def __init__(self, power):
        self.power = power

    def reduce(self, x):
        return x.abs().pow(self.power).mean(-1)


@torch.compile(backend="aot_eager")
def norms(x, reducer):
    return torch.log1p(reducer.reduce(x - x.mean()))


x = torch.randn(50, 8)
total = sum(norms(x, Reducer(power)).sum().item() for power in range(2, 12))
print(f"result: {total:.4f}")
