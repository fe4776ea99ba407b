import torch


class Guide(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.parts = torch.nn.ModuleDict()

    def get_part(self, name, width):
        if name not in self.parts:
            part = torch.nn.Linear(width, 2)
            torch.nn.init.constant_(part.weight, 0.5)
            torch.nn.init.zeros_(part.bias)
            self.parts[name] = part
        return self.parts[name]

    def forward(self, x):
        return self.get_part("loc", x.shape[-1])(x) + self.get_part("scale", x.shape[-1])(x)


guide = Guide()
compiled = torch.compile(guide)
results = []
with torch.no_grad():
    for step in range(3):
        results.append(compiled(torch.full((3, 4), 1.0 + step)))
