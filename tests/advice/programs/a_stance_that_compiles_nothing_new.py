import torch


@torch.compile
def forward(x):
    return x * 2 + 1


results = [forward(torch.ones(4))]
with torch.compiler.set_stance("eager_on_recompile"):
    for length in range(5, 12):
        batch = torch.ones(length)
        results.append(forward(batch))
