"""Three bodies with an adaptive step: RK4 with step doubling."""

import torch

torch.manual_seed(8)
MASSES = torch.tensor([1.0, 0.4, 0.2])


def acceleration(position):
    difference = position[None] - position[:, None]
    distance = difference.square().sum(-1) + 0.05
    return (MASSES[None, :, None] * difference / distance[..., None] ** 1.5).sum(1)


def derivative(state):
    position, velocity = state.unbind(0)
    return torch.stack([velocity, acceleration(position)])


class Integrator:
    def __init__(self, state, step, end, tolerance):
        self.state = state
        self.step = step
        self.end = end
        self.tolerance = tolerance
        self.time = 0.0

    def advance(self, state, scale):
        """RK4 over a part of the current step, which does not go beyond the end."""
        h = scale * min(self.step, self.end - self.time)
        k1 = derivative(state)
        k2 = derivative(state + h / 2 * k1)
        k3 = derivative(state + h / 2 * k2)
        k4 = derivative(state + h * k3)
        return state + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)

    @torch.compile(backend="aot_eager")
    def attempt(self):
        """The state after a whole step in two halves, and its error."""
        whole = self.advance(self.state, 1.0)
        halves = self.advance(self.advance(self.state, 0.5), 0.5)
        return halves, (whole - halves).abs().amax()

    def run(self):
        attempts = 0
        while self.end - self.time > 1e-6:
            state, error = self.attempt()
            attempts += 1
            ratio = self.tolerance / max(error.item(), 1e-9)
            if ratio > 1:
                self.state = state
                self.time += min(self.step, self.end - self.time)
            self.step = self.step * min(2.0, max(0.3, 0.9 * ratio**0.2))
        return attempts


position = torch.randn(3, 2)
velocity = torch.tensor([[0.0, 0.3], [0.2, -0.4], [-0.5, 0.1]])
integrator = Integrator(torch.stack([position, velocity]), step=0.05, end=1.6, tolerance=1e-4)
attempts = integrator.run()
print(f"result: {attempts} {integrator.state.norm().item():.4f} {integrator.state.sum().item():.4f}")
