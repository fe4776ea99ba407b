import contextlib

import torch


class WithAdapter(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.base = torch.nn.Linear(4, 4)
        self.adapter = torch.nn.Linear(4, 4)
        self.disabled = False

    def forward(self, x):
        out = self.base(x)
        if self.disabled:
            return out
        return out + self.adapter(x)


@contextlib.contextmanager
def disable_adapter(model):
    model.disabled = True
    try:
        yield
    finally:
        model.disabled = False


model = WithAdapter()
compiled = torch.compile(model)
results = []
with torch.no_grad():
    for step in range(3):
        x = torch.full((2, 4), 1.0 + step)
        policy = compiled(x)
        with disable_adapter(model):
            reference = compiled(x)
        results.append(policy - reference)
