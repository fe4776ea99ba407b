"""Attention with a sliding window by flex_attention, over sequences of several lengths."""

import torch
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

WINDOW = 16
attend = torch.compile(flex_attention)


def in_window(batch, head, query, key):
    return (query >= key) & (query - key <= WINDOW)


results = []
with torch.no_grad():
    for length in (256, 384, 512, 640):
        q, k, v = torch.randn(3, 1, 4, length, 16).unbind()
        mask = create_block_mask(in_window, None, None, length, length, device="cpu")
        results.append(attend(q, k, v, block_mask=mask).mean())
