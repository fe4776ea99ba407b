"""Denoises images of two resolutions with a small UNet and a scheduler."""

import torch
from diffusers import DDIMScheduler, UNet2DModel

unet = UNet2DModel(
    sample_size=16,
    in_channels=3,
    out_channels=3,
    block_out_channels=(16, 32),
    layers_per_block=1,
    norm_num_groups=8,
    down_block_types=("DownBlock2D", "DownBlock2D"),
    up_block_types=("UpBlock2D", "UpBlock2D"),
).eval()
unet = torch.compile(unet)

scheduler = DDIMScheduler()
scheduler.set_timesteps(4)

results = []
with torch.no_grad():
    for size in (16, 20):
        image = torch.randn(1, 3, size, size)
        for t in scheduler.timesteps.tolist():
            noise = unet(image, t).sample
            image = scheduler.step(noise, t, image).prev_sample
        results.append(image)
