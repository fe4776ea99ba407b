import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = torch.nn.Linear(4, 4)
        self.dropout = torch.nn.Dropout(0.0)

    def forward(self, x):
        return self.dropout(self.lin(x)).sum()


model = Model()
compiled = torch.compile(model)
results = []
for _ in range(2):
    model.train()
    loss = compiled(torch.ones(4, 4))
    loss.backward()
    model.eval()
    with torch.no_grad():
        results += [loss, compiled(torch.ones(4, 4))]
results.append(model.lin.weight.grad)
