from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class SamplerConfig:
    top_k: int
    penalty: float


@torch.compile
def sample(config, logits):
    return torch.topk(logits - config.penalty, config.top_k).values


logits = torch.arange(16.0)
results = []
for config in (SamplerConfig(2, 0.5), SamplerConfig(3, 0.25), SamplerConfig(5, 0.75), SamplerConfig(4, 0.1)):
    results.append(sample(config, logits))
