import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = torch.nn.Linear(4, 4)
        self.step = 0

    def forward(self, x):
        self.step += 1
        return self.lin(x) * self.step


model = Model()
compiled = torch.compile(model)
x = torch.ones(2, 4)
results = []
for _ in range(5):
    loss = compiled(x).sum()
    loss.backward()
    results.append(loss)
results.append(model.lin.weight.grad)
