import torch


@torch.compile
def attend(x, is_causal):
    return x + 1 if is_causal else x - 1


x = torch.ones(4)
results = []
for is_causal in (True, False, True, False, True):
    results.append(attend(x, is_causal))
