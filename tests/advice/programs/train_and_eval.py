import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = torch.nn.Linear(4, 4)
        self.dropout = torch.nn.Dropout(0.0)

    def forward(self, x):
        return self.dropout(self.lin(x))


model = Model()
compiled = torch.compile(model)
x = torch.ones(2, 4)
results = []
for _ in range(2):
    model.train()
    trained = compiled(x)
    model.eval()
    results += [trained, compiled(x)]
