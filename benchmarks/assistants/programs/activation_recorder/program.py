"""Record the activations of a layer during evaluation."""

import torch
from torch import nn

torch.manual_seed(45)
net = nn.Sequential(nn.Linear(10, 20), nn.ReLU(), nn.Linear(20, 2))
recorded = []


def record(module, args, output):
    recorded.append(output.mean(0))


net[1].register_forward_hook(record)
compiled = torch.compile(net, backend="aot_eager")
with torch.no_grad():
    total = 0.0
    for _ in range(10):
        total += compiled(torch.randn(16, 10)).sum().item()
print(f"result: {total:.4f} {torch.stack(recorded).sum():.4f} {len(recorded)}")
