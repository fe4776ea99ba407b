"""Greedy generation for several prompts with keys and values that are concatenated outside of the model.

After https://github.com/rasbt/LLMs-from-scratch/pull/705 (the cache grows by `torch.cat`, outside of the compiled
module) and https://github.com/foundation-model-stack/foundation-model-stack/pull/353 (dynamic lengths of the cache).
"""

import argparse
import functools
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional as F


@dataclass
class Config:
    vocabulary: int = 61
    width: int = 32
    heads: int = 4
    depth: int = 2


def rotate(x, positions):
    half = x.shape[-1] // 2
    frequencies = 10000.0 ** (-torch.arange(half) / half)
    angles = positions[:, None] * frequencies
    cos, sin = angles.cos(), angles.sin()
    a, b = x[..., :half], x[..., half:]
    return torch.cat([a * cos - b * sin, a * sin + b * cos], dim=-1)


class Layer(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.heads = config.heads
        self.norm = nn.RMSNorm(config.width)
        self.qkv = nn.Linear(config.width, 3 * config.width, bias=False)
        self.out = nn.Linear(config.width, config.width, bias=False)
        self.norm2 = nn.RMSNorm(config.width)
        self.up = nn.Linear(config.width, 2 * config.width, bias=False)
        self.down = nn.Linear(2 * config.width, config.width, bias=False)

    def forward(self, x, past, positions):
        batch, length, width = x.shape
        q, k, v = self.qkv(self.norm(x)).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        q, k = rotate(q, positions), rotate(k, positions)
        if past is not None:
            k, v = torch.cat([past[0], k], dim=2), torch.cat([past[1], v], dim=2)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=past is None)
        x = x + self.out(y.transpose(1, 2).reshape(batch, length, width))
        return x + self.down(F.silu(self.up(self.norm2(x)))), (k, v)


class Decoder(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.embedding = nn.Embedding(config.vocabulary, config.width)
        self.layers = nn.ModuleList(Layer(config) for _ in range(config.depth))
        self.norm = nn.RMSNorm(config.width)
        self.head = nn.Linear(config.width, config.vocabulary, bias=False)

    def forward(self, tokens, cache, positions):
        x = self.embedding(tokens)
        new_cache = []
        for layer, past in zip(self.layers, cache, strict=True):
            x, kv = layer(x, past, positions)
            new_cache.append(kv)
        return self.head(self.norm(x[:, -1])), new_cache


class Generator:
    def __init__(self, model, backend):
        self.model = model.eval()
        self.forward = torch.compile(functools.partial(self._forward, self.model), backend=backend)

    @staticmethod
    def _forward(model, tokens, cache, positions):
        logits, cache = model(tokens, cache, positions)
        return logits.argmax(-1, keepdim=True), cache

    @torch.inference_mode()
    def generate(self, prompt, count):
        cache = [None] * len(self.model.layers)
        positions = torch.arange(prompt.shape[1])
        token, cache = self.forward(prompt, cache, positions)
        tokens = [token]
        for _ in range(count - 1):
            positions = positions[-1:] + 1
            token, cache = self.forward(token, cache, positions)
            tokens.append(token)
        return torch.cat(tokens, dim=1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=12)
    parser.add_argument("--prompts", type=int, nargs="+", default=[7, 11, 5])
    parser.add_argument("--backend", default="inductor")
    args = parser.parse_args()

    torch.manual_seed(0)
    config = Config()
    generator = Generator(Decoder(config), args.backend)
    for number, length in enumerate(args.prompts):
        prompt = torch.randint(0, config.vocabulary, (2, length), generator=torch.Generator().manual_seed(number))
        tokens = generator.generate(prompt, args.count)
        for row in tokens.tolist():
            print(number, *row)


if __name__ == "__main__":
    main()
