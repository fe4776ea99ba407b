"""Augment images at random: brighter or darker by a random amount."""

import random

import torch

random.seed(34)
torch.manual_seed(34)


class Brightness:
    def __init__(self, amount):
        self.amount = amount

    def __call__(self, image):
        return (image + self.amount).clamp(0, 1)


@torch.compile(backend="aot_eager")
def augment(image, transform):
    image = transform(image)
    return (image - image.mean((1, 2), keepdim=True)) / 0.25


total = 0.0
for number in range(10):
    transform = Brightness(random.uniform(-0.3, 0.3))
    total += augment(torch.rand(3, 24, 24), transform).abs().mean().item()
print(f"result: {total:.4f}")
