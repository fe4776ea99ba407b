import torch

net = torch.nn.Sequential(torch.nn.Linear(1, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))


@torch.compile
def residual(t):
    u = net(t)
    (du,) = torch.autograd.grad(u.sum(), t, create_graph=True)
    return (du + u).square().mean()


results = residual(torch.ones(4, 1, requires_grad=True))
