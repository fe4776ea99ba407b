import torch


class Tables(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.tables = torch.nn.ModuleList([torch.nn.EmbeddingBag(10, 4, mode="sum") for _ in range(6)])

    def forward(self, indices, offsets):
        parts = [table(indices[at], offsets[at]) for at, table in enumerate(self.tables)]
        return torch.cat(parts, 1)


torch.manual_seed(0)
model = torch.compile(Tables())
results = []
for lengths in ((20, 31, 42, 53, 64, 75), (33, 25, 57, 49, 81, 63), (29, 37, 41, 73, 65, 97)):
    indices = [torch.zeros(length, dtype=torch.long) for length in lengths]
    offsets = [torch.arange(4) for _ in lengths]
    results.append(model(indices, offsets).detach())
