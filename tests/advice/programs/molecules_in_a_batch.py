import torch


class Potential(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = torch.nn.Linear(3, 1)

    def forward(self, positions, molecule):
        energy = self.lin(positions).squeeze(-1)
        count = int(molecule.max().item()) + 1
        total = torch.zeros(count).index_add_(0, molecule, energy)
        return total / count


model = torch.compile(Potential())
results = []
with torch.no_grad():
    for sizes in ([3, 2], [2, 2, 4], [5, 1, 1, 2], [3, 3, 3, 3, 2]):
        molecule = torch.repeat_interleave(torch.arange(len(sizes)), torch.tensor(sizes))
        results.append(model(torch.ones(len(molecule), 3), molecule).sum())
