import torch


class TwoLayers(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.inner = torch.nn.Linear(4, width)
        self.outer = torch.nn.Linear(width, 3)

    def forward(self, x):
        return self.outer(self.inner(x).relu())


@torch.compile
def post(X: list[torch.Tensor], U: list[torch.Tensor]):
    for x, u in zip(X, U, strict=True):
        x.sub_(u * 0.1)


results = []
for width in (5, 6, 7, 8):
    model = TwoLayers(width)
    model(torch.ones(2, 4)).sum().backward()
    params = list(model.parameters())
    with torch.no_grad():
        post(params, [p.grad for p in params])
    results += [p.detach().clone() for p in params]
