"""A square membrane that is plucked and left to swing, with a time step that adapts."""

import math

import torch

torch.manual_seed(0)


@torch.compile(backend="aot_eager")
def advance(position, velocity, damping, dt):
    pull = torch.roll(position, 1, 0) + torch.roll(position, -1, 0) - 2 * position
    velocity = (velocity + pull * dt) * math.exp(-damping)
    return position + velocity * dt, velocity


def simulate(steps=14):
    position = torch.zeros(32, 32)
    position[12:20, 12:20] = 1.0
    velocity = torch.zeros_like(position)
    for step in range(steps):
        damping = 0.05 + 0.013 * step
        dt = 0.1 / (1 + 0.07 * step)
        position, velocity = advance(position, velocity, damping, dt)
    return position, velocity


position, velocity = simulate()
print(f"result: {position.square().sum():.5f} {velocity.square().sum():.5f}")
