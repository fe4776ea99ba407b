"""Cars on a ring of crossings; the signals have phases with other flow and damping."""

from enum import Enum

import torch

torch.manual_seed(17)
CARS = 64


class Phase(Enum):
    """A phase of all signals: the limit of speed, the damping and the push at the crossings."""

    GREEN = (1.0, 0.02, 0.10)
    LATE_GREEN = (0.9, 0.04, 0.08)
    AMBER = (0.6, 0.20, 0.02)
    RED = (0.2, 0.50, 0.00)
    ALL_RED = (0.0, 0.80, 0.00)
    RED_AMBER = (0.3, 0.30, 0.05)

    def __init__(self, limit, damping, push):
        self.limit = limit
        self.damping = damping
        self.push = push


@torch.compile(backend="aot_eager")
def drive(position, speed, phase):
    gap = (position.roll(-1) - position).remainder(CARS)
    wanted = torch.minimum(torch.tanh(gap - 0.4).clamp(min=0), torch.full_like(gap, phase.limit))
    crossing = torch.exp(-4 * torch.sin(3.14159 * position / 8).square())
    speed = speed + (1 - phase.damping) * 0.3 * (wanted - speed) + phase.push * crossing
    speed = speed * (1 - phase.damping * crossing)
    return (position + 0.5 * speed).remainder(CARS), speed


CYCLE = [
    *[Phase.GREEN] * 6,
    *[Phase.LATE_GREEN] * 2,
    *[Phase.AMBER] * 2,
    *[Phase.ALL_RED],
    *[Phase.RED] * 5,
    *[Phase.RED_AMBER],
]

position = torch.arange(CARS, dtype=torch.float32) + 0.3 * torch.rand(CARS)
speed = torch.zeros(CARS)
flow = 0.0
for cycle in range(3):
    for phase in CYCLE:
        position, speed = drive(position, speed, phase)
        flow += speed.mean().item()
print(f"result: {flow:.4f} {position.std().item():.4f}")
