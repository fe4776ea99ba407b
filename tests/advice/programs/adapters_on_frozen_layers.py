import torch


class LoraLayer(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.frozen = torch.nn.Linear(width, width).requires_grad_(False)
        self.down = torch.nn.Linear(width, 2, bias=False)
        self.up = torch.nn.Linear(2, width, bias=False)

    def forward(self, x):
        return torch.tanh(self.frozen(x) + self.up(self.down(x)))


model = torch.nn.Sequential(*[LoraLayer(8) for _ in range(4)])
for layer in model:
    layer.compile()
optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.1)
results = []
for step in range(3):
    x = torch.full((2, 8), 1.0 + step)
    loss = model(x).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    results.append(loss.detach())
