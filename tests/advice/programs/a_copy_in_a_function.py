import copy

import torch


@torch.compile
def forward(x):
    y = torch.sin(x)
    kept = copy.deepcopy(y)
    return kept * 2


results = forward(torch.ones(4))
