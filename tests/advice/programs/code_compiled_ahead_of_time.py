import torch


def forward(x):
    return x * 2 + 1


compiled = torch.compile(forward, fullgraph=True, backend="aot_eager").aot_compile(((torch.ones(4),), {}))
results = [compiled(torch.ones(4))]
for length in (5, 6):
    batch = torch.ones(length)
    try:
        results.append(compiled(batch))
    except RuntimeError:
        results.append("failed")
