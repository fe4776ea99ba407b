import torch


class Mixer:
    def __init__(self):
        self.weight = torch.linspace(-1, 1, 16).reshape(4, 4)

    @torch.compile
    def __matmul__(self, rows):
        return rows @ self.weight


mixer = Mixer()
results = []
for count in (2, 3, 5):
    batch = torch.ones(count, 4)
    results.append(mixer @ batch)
