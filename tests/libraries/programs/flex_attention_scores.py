"""Attention with a bias of its own per layer: each layer makes its own score function from its slope."""

import torch
from torch.nn.attention.flex_attention import flex_attention

attend = torch.compile(flex_attention)


def make_bias(slope):
    def add_bias(score, batch, head, query, key):
        return score - slope * (query - key).abs()

    return add_bias


q, k, v = torch.randn(3, 1, 2, 128, 16).unbind()
results = []
with torch.no_grad():
    for slope in (0.5, 0.25, 0.125, 0.0625):
        results.append(attend(q, k, v, score_mod=make_bias(slope)).mean())
