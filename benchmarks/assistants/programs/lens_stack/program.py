"""Rays of light through a row of thin lenses."""

import torch
from torch import nn

torch.manual_seed(1)


class Lens(nn.Module):
    def __init__(self, power: float):
        super().__init__()
        self.power = power

    def forward(self, height, angle):
        return height, torch.atan(torch.tan(angle) - height * self.power)


@torch.compile(backend="aot_eager")
def trace_rays(lens, height, angle, distance):
    height = height + torch.tan(angle) * distance
    return lens(height, angle)


bench = [Lens(0.1 + 0.03 * i) for i in range(11)]
distance = torch.tensor(0.4)
height, angle = torch.randn(500) * 0.1, torch.zeros(500)
for lens in bench:
    height, angle = trace_rays(lens, height, angle, distance)
print(f"result: {height.std():.5f} {angle.std():.5f}")
