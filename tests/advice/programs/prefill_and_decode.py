import torch


@torch.compile
def attend(x, keys):
    return torch.softmax(x @ keys.mT, -1) @ keys


results, keys = [], torch.zeros(1, 0, 4)
for length in (6, 1, 1, 1):
    x = torch.ones(1, length, 4)
    keys = torch.cat([keys, x], 1)
    results.append(attend(x, keys))
