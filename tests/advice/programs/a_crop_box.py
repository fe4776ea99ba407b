import random

import torch


@torch.compile
def crop_and_resize(image, top, left, height, width):
    patch = image[:, top : top + height, left : left + width]
    return torch.nn.functional.interpolate(patch[None], size=(4, 4))[0]


random.seed(0)
image = torch.arange(3 * 16 * 16.0).reshape(3, 16, 16)
results = []
for step in range(5):
    height, width = random.randint(4, 12), random.randint(4, 12)
    top, left = random.randint(0, 16 - height), random.randint(0, 16 - width)
    results.append(crop_and_resize(image, top, left, height, width))
