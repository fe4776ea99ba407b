"""Sharpen images; some cameras deliver them with rows and columns exchanged."""

import torch
import torch.nn.functional as F

torch.manual_seed(27)
edge = torch.tensor([[0.0, -1, 0], [-1, 5, -1], [0, -1, 0]]).reshape(1, 1, 3, 3)


@torch.compile
def sharpen(image):
    return F.conv2d(image[:, None], edge, padding=1).clamp(0, 1).mean((1, 2, 3))


brightness = 0.0
for number in range(6):
    frames = torch.rand(2, 40, 40)
    if number % 2:
        frames = frames.transpose(1, 2)
    brightness += sharpen(frames).sum().item()
print(f"result: {brightness:.4f}")
