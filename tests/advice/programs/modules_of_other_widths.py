import torch


class Block(torch.nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.lin = torch.nn.Linear(inputs, outputs)

    def forward(self, x):
        return self.lin(x).relu()


blocks = [torch.compile(Block(4, width)) for width in (4, 8, 16)]
x = torch.ones(2, 4)
results = []
for block in blocks:
    y = block(x)
    y.sum().backward()
    results += [y, block._orig_mod.lin.weight.grad]
