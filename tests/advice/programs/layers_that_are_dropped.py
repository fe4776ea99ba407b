import random

import torch


class Encoder(torch.nn.Module):
    def __init__(self, layers, drop):
        super().__init__()
        self.layers = torch.nn.ModuleList(torch.nn.Linear(4, 4) for _ in range(layers))
        self.drop = drop

    def forward(self, x):
        for layer in self.layers:
            if self.training and random.random() < self.drop:
                continue
            x = torch.tanh(layer(x))
        return x


random.seed(3)
model = torch.compile(Encoder(3, 0.5))
results = []
for step in range(6):
    results.append(model(torch.full((2, 4), 1.0 + step)).detach())
