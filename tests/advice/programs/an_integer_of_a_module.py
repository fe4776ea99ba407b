import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = torch.nn.Linear(4, 4)
        self.heads = 9

    def forward(self, x):
        return self.lin(x) * self.heads


model = Model()
compiled = torch.compile(model)
x = torch.ones(2, 4)
results = []
for heads in (9, 5, 7, 3):
    model.heads = heads
    results.append(compiled(x))
