import torch


@torch.compile(dynamic=False)
def attend(query, key, value):
    return torch.softmax(query @ key.mT, -1) @ value


results = []
for length in (4, 6, 8):
    query, key, value = (torch.ones(2, length, 4) for _ in range(3))
    results.append(attend(query, key, value))
