import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = torch.nn.Linear(4, 2)

    def forward(self, x):
        return self.lin(x).square().mean()


model = Model()
compiled = torch.compile(model)
results = []
for epoch in range(2):
    for rows in (8, 8):
        x = torch.ones(rows, 4)
        loss = compiled(x)
        loss.backward()
        results.append(loss)
    with torch.no_grad():
        for rows in (16, 6):
            x = torch.ones(rows, 4)
            results.append(compiled(x))
results.append(model.lin.weight.grad)
