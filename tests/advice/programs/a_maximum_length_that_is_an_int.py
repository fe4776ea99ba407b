import torch


@torch.compile(dynamic=False)
def attend(x, indices):
    positions = torch.arange(indices["max_length"])
    return x + positions.sum()


results = []
for longest in (5, 9, 7, 11):
    x = torch.ones(longest * 2, 4)
    results.append(attend(x, {"max_length": longest}))
