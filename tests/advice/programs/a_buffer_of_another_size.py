import torch


class Lookup(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("table", torch.ones(3, 4))

    def forward(self, x):
        return x @ self.table


model = Lookup()
compiled = torch.compile(model)
x = torch.ones(2, 3)
results = []
for columns in (4, 6, 8):
    model.table = torch.ones(3, columns)
    results.append(compiled(x))
