import torch
from torch import nn

torch._dynamo.config.skip_nnmodule_hook_guards = False


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x):
        return self.second(self.first(x).relu())


def double(module, inputs, output):
    return output * 2


model, results = Model(), []
compiled = torch.compile(model)
for has_hook in (False, True, False, True):
    handle = model.first.register_forward_hook(double) if has_hook else None
    results.append(compiled(torch.ones(2, 4)).detach())
    if handle is not None:
        handle.remove()
