"""Render frames of a scene while the camera zooms in."""

from dataclasses import dataclass

import torch

torch.manual_seed(43)
points = torch.randn(400, 3)


@dataclass
class Camera:
    zoom: torch.Tensor
    frame: int


@torch.compile(backend="aot_eager")
def render(points, camera):
    depth = points[:, 2] + 4
    flat = points[:, :2] / depth[:, None] * camera.zoom
    name = f"frame-{camera.frame:04d}"
    return name, flat.square().sum(-1).sqrt()


total, names = 0.0, []
for frame in range(10):
    name, radius = render(points, Camera(torch.tensor(1.0 + 0.1 * frame), frame))
    names.append(name)
    total += radius.mean().item()
print(f"result: {total:.5f} {len(set(names))}")
