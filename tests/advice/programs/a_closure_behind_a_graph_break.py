import torch


@torch.compile
def forward(x, k):
    def shift(y):
        return y + k

    x = x * 2
    torch._dynamo.graph_break()
    return shift(x)


results = []
for rows in (4, 6, 8):
    x = torch.ones(rows)
    results.append(forward(x, 3))
