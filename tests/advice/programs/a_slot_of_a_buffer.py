import torch


class Slots(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("store", torch.zeros(4, 6))
        self.slot = self.store[0:1]

    def select(self, i):
        self.slot = self.store[i : i + 1]

    def forward(self, x):
        self.slot.copy_(x)
        return self.store.sum()


model = Slots()
compiled = torch.compile(model)
results = []
for i in range(4):
    model.select(i)
    results.append(compiled(torch.full((1, 6), float(i))).clone())
results.append(model.store)
