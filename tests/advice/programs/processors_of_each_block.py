import torch


class Processor:
    def __call__(self, attention, x):
        return attention.lin(x) * 2


class Attention(torch.nn.Module):
    def __init__(self, n):
        super().__init__()
        self.lin = torch.nn.Linear(4, 4)
        self.processor = Processor()
        self.key = (n, "self")

    def forward(self, x, store):
        return self.processor(self, x) + store[self.key]


blocks = [Attention(n) for n in range(3)]
store = {block.key: torch.ones(4) for block in blocks}
for block in blocks:
    block.compile()
x = torch.ones(2, 4)
with torch.no_grad():
    for block in blocks:
        x = block(x, store)
results = x
