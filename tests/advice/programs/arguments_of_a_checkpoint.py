import torch
from torch.utils.checkpoint import checkpoint


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = torch.nn.Linear(4, 4)

    def forward(self, x, *, branch=False, output_attentions=False, past=None):
        y = self.lin(x).sin()
        return y.cos() if branch else y * 2


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.block = Block()

    def forward(self, x, **kwargs):
        return checkpoint(self.block, x, use_reentrant=False, **kwargs)


model = Model()
compiled = torch.compile(model)
x = torch.ones(2, 4, requires_grad=True)
results = []
for kwargs in ({}, {"output_attentions": True}, {"past": torch.zeros(2, 4)}):
    y = compiled(x, **{"output_attentions": False, "past": None, **kwargs})
    y.sum().backward()
    results.append(y.detach())
results.append(model.block.lin.weight.grad)
