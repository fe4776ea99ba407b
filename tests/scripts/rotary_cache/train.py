"""Pretrain with a curriculum of lengths; the rotary embedding fills its tables when it needs them.

After https://github.com/meta-pytorch/torchtune/issues/1497 (a cache that is initialized in `forward`) and
https://github.com/facebookresearch/xformers/issues/728 (tables of cosines that are recomputed for another length).
"""

import argparse

import torch
from torch import nn
from torch.nn import functional as F


class Rotary(nn.Module):
    def __init__(self, dim, base=10000.0):
        super().__init__()
        self.register_buffer("inv_freq", 1.0 / base ** (torch.arange(0, dim, 2).float() / dim), persistent=False)
        self.cos = None
        self.sin = None

    def fill(self, length):
        angles = torch.outer(torch.arange(length, dtype=torch.float32, device=self.inv_freq.device), self.inv_freq)
        self.cos, self.sin = angles.cos(), angles.sin()

    def forward(self, x):
        length = x.shape[-2]
        if self.cos is None or length > self.cos.shape[0]:
            self.fill(length)
        cos, sin = self.cos[:length], self.sin[:length]
        a, b = x.chunk(2, dim=-1)
        return torch.cat([a * cos - b * sin, a * sin + b * cos], dim=-1)


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)
        self.rotary = Rotary(width // heads)

    def forward(self, x):
        q, k, v = (t.unflatten(-1, (self.heads, -1)).transpose(1, 2) for t in self.qkv(x).chunk(3, dim=-1))
        y = F.scaled_dot_product_attention(self.rotary(q), self.rotary(k), v, is_causal=True)
        return self.out(y.transpose(1, 2).flatten(2))


class Model(nn.Module):
    def __init__(self, vocabulary, width=32, heads=4, depth=1):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.attentions = nn.ModuleList(Attention(width, heads) for _ in range(depth))
        self.norms = nn.ModuleList(nn.RMSNorm(width) for _ in range(depth))
        self.head = nn.Linear(width, vocabulary)

    def forward(self, tokens):
        x = self.embedding(tokens)
        for norm, attention in zip(self.norms, self.attentions, strict=True):
            x = x + attention(norm(x))
        return self.head(x)


class Curriculum:
    """Longer sequences later: yields (length, number of steps)."""

    def __init__(self, text):
        self.stages = [tuple(int(n) for n in stage.split("x")) for stage in text.split(",")]

    def __iter__(self):
        return iter(self.stages)


def make_batch(vocabulary, batch_size, length, seed):
    generator = torch.Generator().manual_seed(seed)
    start = torch.randint(0, vocabulary, (batch_size, 1), generator=generator)
    step = torch.randint(1, 4, (batch_size, 1), generator=generator)
    tokens = (start + step * torch.arange(length + 1)) % vocabulary
    return tokens[:, :-1], tokens[:, 1:]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--curriculum", default="12x3,20x3,28x3,36x2")
    parser.add_argument("--batch-size", type=int, default=6)
    parser.add_argument("--vocabulary", type=int, default=31)
    parser.add_argument("--backend", default="aot_eager")
    args = parser.parse_args()

    torch.manual_seed(0)
    model = Model(args.vocabulary)
    step_model = torch.compile(model, backend=args.backend)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, betas=(0.9, 0.95))
    seen = 0
    for length, steps in Curriculum(args.curriculum):
        for _ in range(steps):
            tokens, targets = make_batch(args.vocabulary, args.batch_size, length, seed=seen)
            loss = F.cross_entropy(step_model(tokens).flatten(0, 1), targets.flatten())
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            seen += 1
        print(f"length {length} step {seen} loss {loss.item():.4f} norm {norm.item():.4f}")


if __name__ == "__main__":
    main()
