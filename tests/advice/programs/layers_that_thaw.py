import torch

model = torch.nn.Sequential(
    torch.nn.Linear(4, 4), torch.nn.Tanh(), torch.nn.Linear(4, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1)
)
model[0].requires_grad_(False)
model[2].requires_grad_(False)
compiled = torch.compile(model)
results = []
for epoch in range(5):
    if epoch == 2:
        model[2].requires_grad_(True)
    if epoch == 4:
        model[0].requires_grad_(True)
    x = torch.full((2, 4), 0.5 + epoch)
    loss = compiled(x).square().mean()
    loss.backward()
    with torch.no_grad():
        for p in model.parameters():
            if p.grad is not None:
                p.sub_(p.grad, alpha=0.1)
                p.grad = None
    results.append(loss.detach())
