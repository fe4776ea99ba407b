from concurrent.futures import ThreadPoolExecutor

import torch

OFFSET, LIMIT = 0, 0


@torch.compile
def shift(x):
    return x + (OFFSET + 2)


@torch.compile
def clip(x):
    return x.clamp(max=LIMIT * 2 + 1)


def prepare(x):
    return clip(shift(x))


def handle(number):
    global OFFSET, LIMIT
    OFFSET, LIMIT = 3 * number, 5 * number
    return prepare(torch.ones(4))


with ThreadPoolExecutor(max_workers=1) as pool:
    results = list(pool.map(handle, range(5)))
