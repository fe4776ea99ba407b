import torch


@torch.compile
def update(state):
    state["weight"].sub_(state["grad"] * state["lr"])


results = []
for width in (5, 6, 7, 8):
    weight = torch.nn.Parameter(torch.ones(width, 3))
    (weight * 2).sum().backward()
    state = {"grad": weight.grad, "lr": torch.tensor(0.1), "weight": weight}
    with torch.no_grad():
        update(state)
    results.append(weight.detach().clone())
