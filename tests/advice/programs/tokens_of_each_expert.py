import torch


class Experts(torch.nn.Module):
    def __init__(self, count=3, width=4):
        super().__init__()
        self.gate = torch.nn.Linear(width, count)
        self.experts = torch.nn.ModuleList(torch.nn.Linear(width, width) for _ in range(count))

    def forward(self, x):
        weights, chosen = self.gate(x).softmax(-1).max(-1)
        out = torch.zeros_like(x)
        for i, expert in enumerate(self.experts):
            rows = torch.where(chosen == i)[0]
            out.index_add_(0, rows, expert(x[rows]) * weights[rows, None])
        return out


model = torch.compile(Experts())
results = []
with torch.no_grad():
    for step in range(4):
        results.append(model(torch.linspace(-2, 2, 32).reshape(8, 4).roll(step, 1) * (step + 1)))
