import torch


class Reverse(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, scale):
        ctx.scale = scale
        return x.view_as(x)

    @staticmethod
    def backward(ctx, gradient):
        return -ctx.scale * gradient, None


@torch.compile
def penalize(x, scale):
    return (Reverse.apply(x * 2, scale) - Reverse.apply(x * 3, scale)).square().sum()


results = []
try:
    for scale in (0.5, 0.25, 0.75):
        x = torch.ones(4, requires_grad=True)
        loss = penalize(x, scale)
        loss.backward()
        results += [loss.detach(), x.grad]
except Exception as error:
    results = type(error).__name__
