import torch


class Metric(torch.nn.Module):
    def __init__(self, key):
        super().__init__()
        self.values = {key: torch.ones(3)}

    def forward(self, x):
        return x + sum(self.values.values())


metrics = [torch.compile(Metric(f"key{number}")) for number in range(11)]
x = torch.ones(3)
results = []
for metric in metrics:
    results.append(metric(x))
