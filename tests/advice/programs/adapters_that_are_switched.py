import torch


class Adapters(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.base = torch.nn.Linear(4, 4)
        self.lora = torch.nn.ModuleDict({name: torch.nn.Linear(4, 4) for name in ("cat", "dog", "owl")})
        self.active = "cat"

    def forward(self, x):
        return self.base(x) + self.lora[self.active](x)


model = Adapters()
compiled = torch.compile(model)
x = torch.ones(2, 4)
results = []
for name in ("cat", "dog", "owl", "cat", "dog"):
    model.active = name
    results.append(compiled(x))
