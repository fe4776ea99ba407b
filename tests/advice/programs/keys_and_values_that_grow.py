import torch


@torch.compile(dynamic=False)
def attend(x, past=None):
    keys = x if past is None else torch.cat([past[0], x], 1)
    values = -x if past is None else torch.cat([past[1], -x], 1)
    return torch.softmax(x @ keys.mT, -1) @ values, (keys, values)


past, results = None, []
for step in range(5):
    x = torch.full((1, 2, 4), step / 4)
    y, past = attend(x, past)
    results.append(y)
