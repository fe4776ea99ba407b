"""Heat that spreads in a rod."""

import torch

torch.manual_seed(40)


def step(u, conductivity):
    flux = conductivity * (u[1:] - u[:-1])
    change = torch.zeros_like(u)
    change[1:-1] = flux[1:] - flux[:-1]
    return u + 0.2 * change


@torch.compile(backend="aot_eager")
def evolve(u, conductivity):
    for _ in range(60):
        u = step(u, conductivity)
    return u


u = torch.zeros(101)
u[50] = 1.0
conductivity = torch.rand(100) + 0.5
for _ in range(3):
    u = evolve(u, conductivity)
print(f"result: {u.max():.5f} {u.sum():.5f}")
