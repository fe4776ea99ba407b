import torch


class Cell(torch.nn.Module):
    def __init__(self, size):
        super().__init__()
        self.update = torch.nn.Linear(2 * size, size)
        self.candidate = torch.nn.Linear(2 * size, size)

    def forward(self, x, h):
        both = torch.cat([x, h], -1)
        z = torch.sigmoid(self.update(both))
        return (1 - z) * h + z * torch.tanh(self.candidate(both))


class Recurrent(torch.nn.Module):
    def __init__(self, size):
        super().__init__()
        self.cell = Cell(size)

    def forward(self, xs):
        h = torch.zeros_like(xs[0])
        states = []
        for t in range(len(xs)):
            h = self.cell(xs[t], h)
            states.append(h)
        return torch.stack(states)


model = Recurrent(4)
model = torch.compile(model)
results = []
with torch.no_grad():
    for k in range(3):
        xs = torch.linspace(-1, 1, 40 * 2 * 4).reshape(40, 2, 4) + k
        results.append(model(xs))
