from itertools import pairwise

import torch


@torch.compile(dynamic=False)
def update_moments(param, grad, exp_avg, exp_avg_sq):
    exp_avg.lerp_(grad, 0.1)
    exp_avg_sq.lerp_(grad.square(), 0.01)
    param.addcdiv_(exp_avg, exp_avg_sq.sqrt() + 1e-8, value=-0.1)


widths = (2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12)
model = torch.nn.Sequential(*[torch.nn.Linear(a, b, bias=False) for a, b in pairwise(widths)])
state = {p: (torch.zeros_like(p), torch.zeros_like(p)) for p in model.parameters()}
for step in range(2):
    model(torch.ones(4, 2)).square().mean().backward()
    with torch.no_grad():
        for p in model.parameters():
            update_moments(p.data, p.grad, *state[p])
            p.grad = None
results = [p.detach() for p in model.parameters()]
