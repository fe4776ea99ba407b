import torch


class Average:
    def __init__(self, x):
        self.value, self.steps = x.clone(), 0

    @torch.compile
    def update(self, x):
        self.steps += 1
        if self.steps <= 3:
            self.value.copy_(x)
        else:
            self.value.lerp_(x, 0.1)
        return self.value.clone()


average, results = Average(torch.zeros(4)), []
for step in range(6):
    results.append(average.update(torch.full((4,), float(step))))
