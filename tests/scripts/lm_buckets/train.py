"""Train a character model on sentences that are bucketed by length, with gradient accumulation and validation.

After https://github.com/Lightning-AI/litgpt/pull/794 (the last batch of an epoch is short and recompiles) and
https://github.com/kijai/ComfyUI-KJNodes/pull/454 (`dynamic=False` recompiles at each change of the input).
"""

import argparse
import math
import random

import torch
from torch import nn
from torch.nn import functional as F


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1 = nn.LayerNorm(width)
        self.norm2 = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.proj = nn.Linear(width, width, bias=False)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = self.qkv(self.norm1(x)).chunk(3, dim=-1)
        q, k, v = (t.view(batch, length, self.heads, -1).transpose(1, 2) for t in (q, k, v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(y.transpose(1, 2).reshape(batch, length, width))
        return x + self.mlp(self.norm2(x))


class CharModel(nn.Module):
    def __init__(self, vocabulary, width=32, heads=4, depth=2, max_length=64):
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.positions = nn.Embedding(max_length, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(depth))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)
        self.head.weight = self.tokens.weight  # tied
        nn.init.normal_(self.tokens.weight, std=0.05)

    def forward(self, tokens):
        positions = torch.arange(tokens.shape[1], device=tokens.device)
        x = self.tokens(tokens) + self.positions(positions)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def make_corpus(count, vocabulary, seed):
    rng = random.Random(seed)
    corpus = []
    for _ in range(count):
        length = rng.choice([13, 21, 33])
        start = rng.randrange(vocabulary)
        corpus.append([(start + 3 * i) % vocabulary for i in range(length)])
    return corpus


def bucketed_batches(corpus, batch_size, shuffle_seed=None):
    """Batches of one length each; the last batch of a bucket can be short."""
    buckets = {}
    for sentence in corpus:
        buckets.setdefault(len(sentence), []).append(sentence)
    batches = []
    for _, sentences in sorted(buckets.items()):
        batches += [sentences[i : i + batch_size] for i in range(0, len(sentences), batch_size)]
    if shuffle_seed is not None:
        random.Random(shuffle_seed).shuffle(batches)
    for batch in batches:
        tokens = torch.tensor(batch)
        yield tokens[:, :-1], tokens[:, 1:]


def loss_of(model, tokens, targets):
    return F.cross_entropy(model(tokens).flatten(0, 1), targets.flatten())


@torch.no_grad()
def validate(model, corpus, batch_size):
    model.eval()
    losses = [loss_of(model, tokens, targets).item() for tokens, targets in bucketed_batches(corpus, batch_size)]
    model.train()
    return sum(losses) / len(losses)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch-size", type=int, default=8)
    parser.add_argument("--accumulate", type=int, default=2)
    parser.add_argument("--lr", type=float, default=3e-3)
    parser.add_argument("--backend", default="aot_eager")
    args = parser.parse_args()

    torch.manual_seed(0)
    vocabulary = 29
    model = CharModel(vocabulary)
    # Static shapes give faster kernels.
    model = torch.compile(model, backend=args.backend, dynamic=False)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)
    steps = args.epochs * 8
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda s: 0.5 * (1 + math.cos(math.pi * s / steps)))
    train, valid = make_corpus(44, vocabulary, seed=1), make_corpus(12, vocabulary, seed=2)

    for epoch in range(args.epochs):
        total = 0.0
        for step, (tokens, targets) in enumerate(bucketed_batches(train, args.batch_size, shuffle_seed=epoch)):
            loss = loss_of(model, tokens, targets) / args.accumulate
            loss.backward()
            total += loss.item() * args.accumulate
            if (step + 1) % args.accumulate == 0:
                nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                optimizer.zero_grad(set_to_none=True)
                schedule.step()
        print(f"epoch {epoch}: train {total / (step + 1):.4f} valid {validate(model, valid, args.batch_size):.4f}")


if __name__ == "__main__":
    main()
