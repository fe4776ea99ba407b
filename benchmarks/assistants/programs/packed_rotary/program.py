"""Training with packed sequences: documents of other lengths share one row of tokens."""

import torch
from torch import nn

CONTEXT = 256
TOKENS = 512
HEADS, DIM = 4, 16

torch.manual_seed(1)


def pack(generator):
    """Positions of TOKENS tokens that belong to documents of random lengths, and the longest length."""
    positions, lengths = [], []
    while sum(lengths) < TOKENS:
        length = int(torch.randint(20, CONTEXT, (), generator=generator))
        length = min(length, TOKENS - sum(lengths))
        lengths.append(length)
        positions.append(torch.arange(length))
    return torch.cat(positions), max(lengths)


class Rotary(nn.Module):
    def __init__(self, base=10000.0):
        super().__init__()
        self.register_buffer("frequencies", base ** (-torch.arange(0, DIM, 2) / DIM))

    def forward(self, x, positions, max_length):
        angles = torch.outer(torch.arange(max_length, device=x.device), self.frequencies)
        cos, sin = angles.cos()[positions, None], angles.sin()[positions, None]
        a, b = x.chunk(2, -1)
        return torch.cat([a * cos - b * sin, a * sin + b * cos], -1)


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.project = nn.Linear(HEADS * DIM, 3 * HEADS * DIM)
        self.rotary = Rotary()

    def forward(self, x, positions, max_length):
        q, k, v = self.project(x).view(TOKENS, 3, HEADS, DIM).unbind(1)
        q = self.rotary(q, positions, max_length).transpose(0, 1)
        k = self.rotary(k, positions, max_length).transpose(0, 1)
        out = torch.nn.functional.scaled_dot_product_attention(q, k, v.transpose(0, 1))
        return x + out.transpose(0, 1).reshape(TOKENS, -1)


model = Attention()
train_forward = torch.compile(model, fullgraph=True, dynamic=False, backend="aot_eager")
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
generator = torch.Generator().manual_seed(7)
last = 0.0
for step in range(7):
    positions, max_length = pack(generator)
    x = torch.randn(TOKENS, HEADS * DIM, generator=generator)
    loss = (train_forward(x, positions, max_length) - x.roll(1, 0)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    last = loss.item()
print(f"result: {last:.5f} {model.project.weight.norm().item():.4f}")
