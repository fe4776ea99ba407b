import torch


class Pool(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x).mean(1)


model = Pool()
model.compile(dynamic=False)
results = []
for length in (4, 6, 8, 10):
    ids = torch.linspace(-1, 1, 2 * length).reshape(2, length)
    results.append(model(ids))
