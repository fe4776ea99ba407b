"""Log-likelihood of counts from two detectors."""

import torch

torch.manual_seed(28)


@torch.compile
def log_likelihood(counts, rate):
    return (counts * torch.log(rate) - rate - torch.lgamma(counts + 1.0)).sum()


def read(number):
    counts = torch.randint(0, 20, (300,))
    return counts.int() if number % 2 else counts


total = 0.0
for number in range(6):
    total += log_likelihood(read(number), torch.full((300,), 9.0)).item()
print(f"result: {total:.2f}")
