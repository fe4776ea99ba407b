import torch


@torch.compile(dynamic=False)
def forward(x):
    y = x + 1
    torch._dynamo.graph_break()
    return y * x


results = []
for rows in (4, 6, 8):
    batch = torch.ones(rows)
    results.append(forward(batch))
