import torch

head = torch.nn.Linear(4, 4).requires_grad_(False)


@torch.compile
def sample(x):
    dt = torch.tensor(-0.25)
    time = torch.tensor(1.0)
    while time >= -dt / 2:
        x = x + dt * head(x) * time
        time = time + dt
    return x


results = sample(torch.ones(2, 4))
