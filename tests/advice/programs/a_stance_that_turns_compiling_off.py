import torch


@torch.compile
def forward(x):
    return x * 2 + 1


x = torch.ones(4)
results = [forward(x)]
with torch.compiler.set_stance("force_eager"):
    results.append(forward(x))
    for _ in range(3):
        results.append(forward(x) + 1)
