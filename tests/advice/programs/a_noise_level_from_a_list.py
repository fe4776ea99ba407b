import torch


class Sampler:
    def __init__(self):
        self.levels = [8.0, 4.0, 2.0, 1.0, 0.5, 0.0]
        self.position = 0

    @torch.compile
    def step(self, x):
        level, following = self.levels[self.position], self.levels[self.position + 1]
        self.position += 1
        return x + (following - level) * x


sampler, x, results = Sampler(), torch.ones(4), []
for _ in range(5):
    x = sampler.step(x)
    results.append(x)
