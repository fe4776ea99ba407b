"""Energies of molecules that are packed into one batch of atoms."""

import torch
from torch import nn

torch.manual_seed(2)


class Energy(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(10, 16)
        self.head = nn.Sequential(nn.Linear(16, 32), nn.SiLU(), nn.Linear(32, 1))

    def forward(self, numbers, owner):
        per_atom = self.head(self.embed(numbers)).squeeze(-1)
        count = int(owner.max()) + 1
        return torch.zeros(count).scatter_add(0, owner, per_atom)


def pack(sizes):
    numbers = torch.cat([torch.randint(1, 9, (size,)) for size in sizes])
    owner = torch.repeat_interleave(torch.arange(len(sizes)), torch.tensor(sizes))
    return numbers, owner


model = torch.compile(Energy(), backend="aot_eager")
batches = [pack([26] * 8) for _ in range(6)]
total = 0.0
for numbers, owner in batches:
    total += model(numbers, owner).sum().item()
print(f"result: {total:.4f}")
