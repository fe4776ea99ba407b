import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = torch.nn.Linear(4, 1)

    def forward(self, x):
        return self.lin(x).square().mean()


model = Model()
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)


@torch.compile(dynamic=False)
def train_step(x):
    return model(x)


update = torch.compile(optimizer.step, dynamic=False)
results = []
for rows, rate in ((4, 0.5), (4, 0.25), (2, 0.1)):
    optimizer.param_groups[0]["lr"] = rate
    x = torch.ones(rows, 4)
    loss = train_step(x)
    loss.backward()
    update()
    results.append(loss)
results += list(model.parameters())
