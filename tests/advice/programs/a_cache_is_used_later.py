import torch


@torch.compile
def attend(x, past=None, use_cache=False):
    keys = x if past is None else torch.cat([past, x], 1)
    y = torch.softmax(x @ keys.mT, -1) @ keys
    return (y, keys * 1) if use_cache else (y, None)


results, past = [], None
for step in range(4):
    x = torch.full((1, 4, 4), step / 4)
    y, past = attend(x, past, use_cache=step > 0)
    results.append(y)
