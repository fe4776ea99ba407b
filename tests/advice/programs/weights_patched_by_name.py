import torch


class PatchedLayer(torch.nn.Module):
    def __init__(self, name):
        super().__init__()
        self.name = name
        self.patches = {name: torch.full((4,), 0.1 * len(name))}

    def forward(self, x):
        return torch.sin(x) + self.patches[self.name]


layers = [PatchedLayer(f"blocks.{'0' * n}") for n in range(5)]
for layer in layers:
    layer.compile(backend="eager")
results = []
for step in range(2):
    x = torch.ones(4)
    for layer in layers:
        x = layer(x)
    results.append(x)
