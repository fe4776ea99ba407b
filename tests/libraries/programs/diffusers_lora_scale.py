"""Denoises with a LoRA whose strength changes from image to image."""

import torch
from diffusers import UNet2DConditionModel
from peft import LoraConfig

unet = UNet2DConditionModel(
    sample_size=8,
    in_channels=4,
    out_channels=4,
    block_out_channels=(16, 32),
    layers_per_block=1,
    norm_num_groups=8,
    cross_attention_dim=16,
    attention_head_dim=8,
    down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"),
    up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"),
).eval()
unet.add_adapter(LoraConfig(r=4, init_lora_weights=False, target_modules=["to_q", "to_v"]))
compiled = torch.compile(unet)

prompt = torch.randn(1, 6, 16)
latents = torch.randn(1, 4, 8, 8)

results = []
with torch.no_grad():
    for scale in (1.0, 0.8, 0.6, 0.4):
        unet.set_adapters(["default"], [scale])
        results.append(compiled(latents, torch.tensor(10), prompt).sample)
