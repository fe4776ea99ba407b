"""A server that collects the requests of each tick and scores them in one batch."""

import random

import torch
from torch import nn

MAX_BATCH = 8
FEATURES = 24

torch.manual_seed(0)
random.seed(0)


class Scorer(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Linear(FEATURES, 48)
        self.norm = nn.LayerNorm(48)
        self.head = nn.Linear(48, 3)

    def forward(self, rows):
        hidden = torch.nn.functional.silu(self.norm(self.embed(rows)))
        return self.head(hidden).log_softmax(-1)


class Server:
    def __init__(self):
        self.model = torch.compile(Scorer().eval(), backend="aot_eager")
        self.queue = []

    def submit(self, request):
        self.queue.append(request)

    @torch.no_grad()
    def tick(self):
        """Answer up to MAX_BATCH requests."""
        requests, self.queue = self.queue[:MAX_BATCH], self.queue[MAX_BATCH:]
        if not requests:
            return []
        rows = torch.stack(requests)
        scores = self.model(rows)
        return list(scores[: len(requests)])


def main():
    server = Server()
    answers = []
    for tick in range(14):
        for _ in range(random.choice([1, 3, 4, 6, 10])):
            server.submit(torch.randn(FEATURES))
        answers += server.tick()
    total = torch.stack(answers)
    print(f"{len(answers)} requests answered")
    print(f"result: {total.mean().item():.5f} {total.exp().std().item():.5f}")


main()
