from dataclasses import dataclass

import torch


@dataclass
class Options:
    temperature: float
    penalty: float


@torch.compile
def score(logits, counts, options):
    if options.penalty != 1.0:
        logits = logits - (options.penalty - 1.0) * counts
    return (logits / max(options.temperature, 1e-5)).softmax(-1)


results = []
for temperature, penalty in ((0.7, 1.0), (0.8, 1.0), (0.9, 1.1), (1.1, 1.2), (1.2, 1.3)):
    results.append(score(torch.arange(6.0), torch.arange(6.0), Options(temperature, penalty)))
