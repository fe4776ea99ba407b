"""Train a small mixture of experts that skips experts without tokens and counts its load.

After https://github.com/PrimeIntellect-ai/prime-rl/issues/996 (`.item()` on the tokens of each expert breaks the graph)
and https://github.com/pytorch/torchtitan/pull/1364 (inactive experts).
"""

import argparse
import collections

import torch
from torch import nn
from torch.nn import functional as F


class Expert(nn.Module):
    def __init__(self, width, hidden):
        super().__init__()
        self.up = nn.Linear(width, hidden)
        self.down = nn.Linear(hidden, width)

    def forward(self, x):
        return self.down(F.silu(self.up(x)))


class MixtureOfExperts(nn.Module):
    def __init__(self, width, hidden, experts, top_k=2):
        super().__init__()
        self.top_k = top_k
        self.router = nn.Linear(width, experts, bias=False)
        self.experts = nn.ModuleList(Expert(width, hidden) for _ in range(experts))

    def forward(self, x):
        tokens = x.flatten(0, 1)
        probabilities = self.router(tokens).softmax(-1)
        top, chosen = probabilities.topk(self.top_k, dim=-1)
        gates = torch.zeros_like(probabilities).scatter(1, chosen, top / top.sum(-1, keepdim=True))
        out = torch.zeros_like(tokens)
        for index, expert in enumerate(self.experts):
            gate = gates[:, index : index + 1]
            if gate.count_nonzero().item() == 0:
                continue  # nobody chose this expert
            out = out + gate * expert(tokens)
        load = gates.gt(0).float().mean(0)
        balance = len(self.experts) * (load * probabilities.mean(0)).sum()
        return out.view_as(x), balance, load


class Model(nn.Module):
    def __init__(self, width=24, experts=4, classes=5):
        super().__init__()
        self.embed = nn.Linear(10, width)
        self.norm = nn.LayerNorm(width)
        self.moe = MixtureOfExperts(width, 2 * width, experts)
        self.head = nn.Linear(width, classes)

    def forward(self, x):
        x = self.embed(x)
        y, balance, load = self.moe(self.norm(x))
        return self.head((x + y).mean(1)), balance, load


class LoadMonitor:
    def __init__(self, smoothing=0.9):
        self.smoothing = smoothing
        self.average = None
        self.recent = collections.deque(maxlen=4)

    def update(self, load):
        load = load.detach()
        self.average = load if self.average is None else self.average.lerp(load, 1 - self.smoothing)
        self.recent.append(load)

    def report(self):
        return " ".join(f"{value:.3f}" for value in self.average.tolist())


def make_batches(count, batch_size, length, seed):
    generator = torch.Generator().manual_seed(seed)
    for _ in range(count):
        x = torch.randn(batch_size, length, 10, generator=generator)
        yield x, x.mean(1)[:, :5].argmax(-1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--experts", type=int, default=4)
    parser.add_argument("--balance", type=float, default=0.01)
    parser.add_argument("--backend", default="aot_eager")
    args = parser.parse_args()

    torch.manual_seed(0)
    model = Model(experts=args.experts)
    compiled = torch.compile(model, backend=args.backend)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    monitor = LoadMonitor()
    for step, (x, y) in enumerate(make_batches(args.steps, 6, 8, seed=1)):
        logits, balance, load = compiled(x)
        loss = F.cross_entropy(logits, y) + args.balance * balance
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        monitor.update(load)
        print(f"step {step} loss {loss.item():.4f} balance {balance.item():.4f}")
    print("load", monitor.report())


if __name__ == "__main__":
    main()
