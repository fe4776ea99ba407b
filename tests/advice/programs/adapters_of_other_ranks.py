import torch


class Adapter(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.base = torch.nn.Linear(4, 4)
        self.set_rank(2)

    def set_rank(self, rank):
        self.down = torch.nn.Parameter(torch.ones(rank, 4))
        self.up = torch.nn.Parameter(torch.ones(4, rank))

    def forward(self, x):
        return self.base(x) + x @ self.down.T @ self.up.T


model = Adapter()
compiled = torch.compile(model)
x = torch.ones(2, 4)
results = []
for rank in (2, 4, 8):
    model.set_rank(rank)
    results.append(compiled(x))
