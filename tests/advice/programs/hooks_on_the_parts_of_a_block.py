import torch


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = torch.nn.Linear(4, 4)
        self.mlp = torch.nn.Linear(4, 4)

    def forward(self, x):
        return x + self.mlp(self.attention(x))


def scale_output(module, args, kwargs, output):
    return output * 0.5


blocks = [Block() for _ in range(4)]
for block in blocks:
    block.attention.register_forward_hook(scale_output, with_kwargs=True)
compiled = [torch.compile(block, fullgraph=True) for block in blocks]
x = torch.ones(2, 4)
results = []
with torch.no_grad():
    for block in compiled:
        x = block(x)
        results.append(x)
