import torch


class Noisy(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = torch.nn.Linear(4, 4)
        self.step = 0
        self.noise = 1.0

    def forward(self, x):
        self.step += 1
        return self.lin(x) * self.noise + self.step


model = Noisy()
compiled = torch.compile(model)
x = torch.ones(2, 4)
results = []
for _ in range(4):
    y = compiled(x)
    y.sum().backward()
    model.noise *= 0.5
    results.append(y)
results.append(model.lin.weight.grad)
