import logging

import torch

logger = logging.getLogger("unet")


@torch.compile
def resize(x):
    factor = 2
    for size in x.shape:
        if size % 4:
            logger.info("the size is odd")
            factor = 1
            break
    return torch.sin(x) * factor


results = resize(torch.ones(6, 8))
