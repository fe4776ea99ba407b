import torch


@torch.compile(dynamic=False)
def interpolate(positions, height, width):
    grid = positions.reshape(1, 1, 8, 8)
    return torch.nn.functional.interpolate(grid, size=(height, width), mode="nearest")


positions = torch.arange(64.0)
results = []
for height, width in ((16, 12), (24, 20), (20, 28), (10, 14)):
    results.append(interpolate(positions, height, width))
