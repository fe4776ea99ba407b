import torch


@torch.compile
def embed(x, extra):
    return x * 2 + sum(extra.values())


results = []
for length, keys in ((4, "a"), (6, "ab"), (8, "a"), (10, "ab")):
    x, extra = torch.ones(length), {key: torch.ones(1) for key in keys}
    results.append(embed(x, extra))
