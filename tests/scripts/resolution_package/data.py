"""Random images whose class is the direction of a gradient; a batch has one resolution."""

import itertools

import torch
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset


class Gradients(Dataset):
    def __init__(self, count, size, classes, seed):
        generator = torch.Generator().manual_seed(seed)
        self.labels = torch.randint(0, classes, (count,), generator=generator)
        grid = torch.linspace(-1, 1, size)
        y, x = torch.meshgrid(grid, grid, indexing="ij")
        directions = torch.stack([x, y, -x, -y])[self.labels]
        self.images = directions[:, None] + 0.7 * torch.randn(count, 3, size, size, generator=generator)

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        return self.images[index], self.labels[index]


class MultiResolutionLoader:
    """Resizes each batch to the next of some resolutions."""

    def __init__(self, dataset, batch_size, resolutions, shuffle):
        self.loader = DataLoader(dataset, batch_size=batch_size, shuffle=shuffle)
        self.resolutions = resolutions

    def __iter__(self):
        for (images, labels), size in zip(self.loader, itertools.cycle(self.resolutions), strict=False):
            yield F.interpolate(images, size=(size, size), mode="bilinear", antialias=True), labels

    def __len__(self):
        return len(self.loader)
