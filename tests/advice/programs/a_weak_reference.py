import gc
import weakref

import torch


class Owner:
    scale = 3


@torch.compile
def scale(x, reference):
    return x + 1 if reference() is None else x * reference().scale


x, owner = torch.ones(4), Owner()
reference = weakref.ref(owner)
results = [scale(x, reference)]
del owner
gc.collect()
results.append(scale(x, reference))
