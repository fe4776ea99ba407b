import torch

torch._dynamo.config.skip_nnmodule_hook_guards = False


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.mlp = torch.nn.Linear(4, 4)

    def forward(self, x):
        return x + self.mlp(x)


def damp(module, args, output):
    return output * 0.5


block = Block()
compiled = torch.compile(block)
x = torch.ones(2, 4)
results = []
with torch.no_grad():
    for is_damped in (False, True, False, True):
        handle = block.mlp.register_forward_hook(damp) if is_damped else None
        results.append(compiled(x))
        if handle is not None:
            handle.remove()
