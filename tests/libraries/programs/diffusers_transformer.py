"""Runs a small diffusion transformer at two resolutions, with two prompt lengths, block by block."""

import torch
from diffusers import FluxTransformer2DModel

model = FluxTransformer2DModel(
    patch_size=1,
    in_channels=4,
    num_layers=2,
    num_single_layers=2,
    attention_head_dim=16,
    num_attention_heads=2,
    joint_attention_dim=32,
    pooled_projection_dim=32,
    axes_dims_rope=(4, 4, 8),
).eval()
model = torch.compile(model)


def make_ids(height, width):
    ids = torch.zeros(height, width, 3)
    ids[..., 1] += torch.arange(height)[:, None]
    ids[..., 2] += torch.arange(width)[None, :]
    return ids.reshape(height * width, 3)


results = []
with torch.no_grad():
    for side, words in ((5, 8), (7, 8), (7, 12)):
        latents = torch.randn(1, side * side, 4)
        text = torch.randn(1, words, 32)
        image = model(
            hidden_states=latents,
            encoder_hidden_states=text,
            pooled_projections=torch.randn(1, 32),
            timestep=torch.tensor([0.5]),
            img_ids=make_ids(side, side),
            txt_ids=torch.zeros(words, 3),
        ).sample
        results.append(image)
