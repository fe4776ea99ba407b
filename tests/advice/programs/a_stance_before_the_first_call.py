import torch


@torch.compile
def forward(x):
    return x * 2 + 1


x = torch.ones(4)
results = []
with torch.compiler.set_stance("eager_on_recompile"):
    for _ in range(3):
        results.append(forward(x))
