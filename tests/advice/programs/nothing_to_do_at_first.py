import torch


@torch.compile
def apply_mask(x, mask=None):
    return x if mask is None else x * mask


x = torch.ones(4)
results = []
for mask in (None, torch.ones(4), torch.ones(4)):
    results.append(apply_mask(x, mask))
