"""A teacher that follows a student with a momentum that grows."""

import torch
from torch import nn

torch.manual_seed(52)


class Teacher(nn.Module):
    def __init__(self, width=20):
        super().__init__()
        self.register_buffer("weight", torch.zeros(width))
        self.updates = 0

    def forward(self, student):
        self.updates += 1
        momentum = 1 - 1 / (self.updates + 1)
        print("update", self.updates)
        self.weight.mul_(momentum).add_(student * (1 - momentum))
        return self.weight.square().sum()


teacher = Teacher()
update = torch.compile(teacher, backend="aot_eager")
total = 0.0
for _ in range(12):
    total += update(torch.randn(20)).item()
print(f"result: {total:.5f}")
