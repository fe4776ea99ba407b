"""Train one encoder for three tasks that take turns; the name of the task selects head and loss.

After https://github.com/huggingface/diffusers/issues/9279 (adapters that are selected by name) and
https://github.com/pytorch/pytorch/issues/141589 (several models that share code).
"""

import argparse
import itertools

import torch
from torch import nn
from torch.nn import functional as F

TASKS = ("sentiment", "rating", "tags")


class Encoder(nn.Module):
    def __init__(self, vocabulary, width):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.query = nn.Parameter(torch.randn(width) / width**0.5)
        self.mlp = nn.Sequential(nn.Linear(width, 2 * width), nn.SiLU(), nn.Linear(2 * width, width))

    def forward(self, tokens):
        x = self.embedding(tokens)
        weights = (x @ self.query).softmax(-1)
        pooled = (weights.unsqueeze(-1) * x).sum(1)
        return pooled + self.mlp(pooled)


class MultiTask(nn.Module):
    def __init__(self, vocabulary=80, width=24):
        super().__init__()
        self.encoder = Encoder(vocabulary, width)
        self.heads = nn.ModuleDict(
            {"sentiment": nn.Linear(width, 3), "rating": nn.Linear(width, 1), "tags": nn.Linear(width, 8)}
        )

    def forward(self, tokens, target, task):
        logits = self.heads[task](self.encoder(tokens))
        if task == "sentiment":
            return F.cross_entropy(logits, target)
        if task == "rating":
            return F.huber_loss(logits.squeeze(-1).sigmoid() * 5, target)
        return F.binary_cross_entropy_with_logits(logits, target)


def make_batch(task, batch_size, seed):
    generator = torch.Generator().manual_seed(seed)
    tokens = torch.randint(0, 80, (batch_size, 12), generator=generator)
    score = tokens.float().mean(1) / 80
    if task == "sentiment":
        return tokens, torch.bucketize(score, torch.tensor([0.45, 0.55]))
    if task == "rating":
        return tokens, 5 * score
    return tokens, (tokens[:, :8] > 40).float()


class TaskSampler:
    """Round robin over the tasks, each with its own weight."""

    def __init__(self, weights):
        self.turns = itertools.cycle(task for task, count in weights.items() for _ in range(count))

    def __next__(self):
        return next(self.turns)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=24)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--weights", type=int, nargs=3, default=[2, 1, 1])
    parser.add_argument("--backend", default="aot_eager")
    args = parser.parse_args()

    torch.manual_seed(0)
    model = MultiTask()
    compute_loss = torch.compile(model, backend=args.backend)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    sampler = TaskSampler(dict(zip(TASKS, args.weights, strict=True)))
    history = {task: [] for task in TASKS}
    for step in range(args.steps):
        task = next(sampler)
        tokens, target = make_batch(task, args.batch_size, seed=step)
        loss = compute_loss(tokens, target, task)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        history[task].append(loss.item())
    for task, losses in history.items():
        print(f"{task:10} {len(losses):2d} steps {losses[0]:.4f} -> {losses[-1]:.4f}")


if __name__ == "__main__":
    main()
