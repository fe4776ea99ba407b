import torch


class Cache:
    def __init__(self):
        self.offset = 0
        self.state = torch.zeros(2, 4)


class Mixer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = torch.nn.Linear(4, 4)

    def forward(self, x, cache):
        x = torch.tanh(self.lin(x))
        if cache.offset > 0:
            cache.state = 0.9 * cache.state + x[:, -1]
        else:
            cache.state = x.sum(1)
        cache.offset += x.shape[1]
        return cache.state


model = torch.compile(Mixer())
results = []
with torch.no_grad():
    for prompt in (5, 7):
        cache = Cache()
        results.append(model(torch.ones(2, prompt, 4), cache))
        for step in range(3):
            results.append(model(torch.full((2, 1, 4), 0.5 + step), cache))
